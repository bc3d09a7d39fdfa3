"""CSVIter and LibSVMIter: passes and values are those of MXNet 1.9.1; what is no number is an error with its line."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx.base import DTypeError, FileFormatError, MissingFileError


@pytest.fixture
def table(tmp_path):
    """Writes a file; returns its path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


TEXT = "".join(f"{10 * i},{10 * i + 1},{10 * i + 2}\n" for i in range(7))


def firsts(batches):
    """The first numbers of the rows of each batch, its pad, and the numbers of its examples."""
    return [(b.data[0].asnumpy()[:, 0].astype(int).tolist(), b.pad, b.index.tolist()) for b in batches]


@pytest.mark.parametrize("ahead", [0, 4])
def test_passes_go_on_behind_what_filled_up_the_last_batch(table, ahead):
    batches = mx.io.CSVIter(data_csv=table(TEXT), data_shape=(3,), batch_size=3, prefetch_buffer=ahead)
    assert batches.provide_data == [("data", (3, 3))]
    assert batches.provide_label == [("softmax_label", (3,))]
    assert batches.batch_size == 3
    assert firsts(batches) == [([0, 10, 20], 0, [0, 1, 2]), ([30, 40, 50], 0, [3, 4, 5]), ([60, 0, 10], 2, [6, 0, 1])]
    batches.reset()
    assert firsts(batches) == [([20, 30, 40], 0, [2, 3, 4]), ([50, 60, 0], 1, [5, 6, 0])]
    batches.reset()
    assert firsts(batches) == [([10, 20, 30], 0, [1, 2, 3]), ([40, 50, 60], 0, [4, 5, 6])]
    batches.reset()
    batches.next()
    batches.reset()  # in the middle: from the beginning
    assert firsts(batches)[0] == ([0, 10, 20], 0, [0, 1, 2])


def test_a_short_batch_keeps_the_rows_of_the_one_before(table):
    batches = mx.io.CSVIter(data_csv=table(TEXT), data_shape=(3,), batch_size=3, round_batch=False)
    for _ in range(2):
        found = []
        for batch in batches:
            found.append(firsts([batch])[0])
            batch.data[0][:] = -1  # a batch is the program's own
        assert found[1:] == [([30, 40, 50], 0, [3, 4, 5]), ([60, 40, 50], 2, [6, 4, 5])]
        batches.reset()


@pytest.mark.parametrize("size", [10, 15])
def test_a_batch_larger_than_the_file(table, size):
    batch = mx.io.CSVIter(data_csv=table(TEXT), data_shape=(3,), batch_size=size).next()
    assert batch.data[0].asnumpy()[:, 0].tolist() == [10 * (i % 7) for i in range(size)]
    assert batch.pad == size - 7


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_labels_and_dtypes(table, dtype):
    label = table("".join(f"{i},{-i}\n" for i in range(7)), "label.csv")
    batches = mx.io.CSVIter(
        data_csv=table(TEXT),
        data_shape=(3, 1),
        label_csv=label,
        label_shape=(2,),
        batch_size=3,
        dtype=dtype,
        data_name="x",
        label_name="y",
    )
    assert batches.provide_data == [("x", (3, 3, 1))]
    assert batches.provide_data[0].dtype == np.dtype(dtype)
    assert batches.provide_label == [("y", (3, 2))]
    batch = list(batches)[2]
    assert batch.data[0].dtype == batch.label[0].dtype == np.dtype(dtype)
    assert batch.label[0].asnumpy().tolist() == [[6, -6], [0, 0], [1, -1]]


def test_several_files_and_a_folder(table, tmp_path):
    path = table(TEXT)
    batches = mx.io.CSVIter(data_csv=f"{path};{path}", data_shape=(3,), batch_size=4)
    assert firsts(batches)[1] == ([40, 50, 60, 0], 0, [4, 5, 6, 7])
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.csv").write_text("3\n4")
    (folder / "a.csv").write_text("1\n2")
    (folder / "empty.csv").write_text("")
    assert firsts(mx.io.CSVIter(data_csv=folder, data_shape=(1,), batch_size=4))[0][0] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,3,\n4,5,6,,\n", [[1, 2, 3], [4, 5, 6]]),
        ("\n1,2,3\n\n\n4,5,6", [[1, 2, 3], [4, 5, 6]]),
        ("1,2,3\r\n4,5,6\r\n", [[1, 2, 3], [4, 5, 6]]),
        (" 1, 2 ,3 \n4,5,6\n", [[1, 2, 3], [4, 5, 6]]),
        ("\ufeff1,2,3\n", [[1, 2, 3]]),
        ("nan,inf,-inf\n", [[np.nan, np.inf, -np.inf]]),
        ("+1,-2.5,.5\n1e3,1E-2,010\n", [[1, -2.5, 0.5], [1000, 0.01, 10]]),
        ("1e40,1e-50,3.4028236e38\n", [[np.inf, 0, np.inf]]),
    ],
)
def test_what_counts_as_a_table(table, text, values):
    batches = mx.io.CSVIter(data_csv=table(text), data_shape=(3,), batch_size=1)
    np.testing.assert_array_equal([batch.data[0].asnumpy()[0] for batch in batches], np.array(values, np.float32))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1,,3\n", {}, r"table.csv, line 1: a number is wanted, here is ''"),
        ("a,b,c\n1,2,3\n", {}, r"line 1: a number is wanted, here is 'a'; take a line of headings out of the file"),
        ("1,2,3\n4,5\n", {}, r"line 2: a row of 3 numbers is wanted, for shape \(3,\); here are 2 fields"),
        ("1;2;3\n", {}, r"line 1: a row of 3 numbers is wanted"),
        ("1,2,3\n\n1.5,2,3\n", {"dtype": "int32"}, r"line 3: a whole number is wanted, here is '1.5'"),
        ("1,2,3000000000\n", {"dtype": "int32"}, r"line 1: there is a number that does not fit into int32"),
        ("1,2,1_000\n", {}, r"line 1: a number is wanted, here is '1_000'"),
    ],
)
def test_what_is_no_table(table, text, options, message):
    with pytest.raises(FileFormatError, match=message):
        list(mx.io.CSVIter(data_csv=table(text), data_shape=(3,), batch_size=1, **options))


def test_a_large_table(table):
    """Several blocks of lines, and a fault in the last one: all batches before it come."""
    values = np.random.RandomState(0).random_sample((30000, 8)).astype(np.float32)
    lines = [",".join(map(repr, row)) for row in values.tolist()]
    batches = mx.io.CSVIter(data_csv=table("\n".join(lines)), data_shape=(8,), batch_size=7000)
    found = np.concatenate([batch.data[0].asnumpy() for batch in batches])
    np.testing.assert_array_equal(found[:30000], values)
    lines[29500] = "1,2,3,4,5,6,7,x"
    batches = mx.io.CSVIter(data_csv=table("\n".join(lines)), data_shape=(8,), batch_size=1000)
    for _ in range(25):
        batches.next()
    with pytest.raises(FileFormatError, match="line 29501: a number is wanted, here is 'x'"):
        list(batches)


def test_wrong_arguments(table, tmp_path):
    path = table(TEXT)
    with pytest.raises(DTypeError, match="dtype is float64; choose float32, int32 or int64"):
        mx.io.CSVIter(data_csv=path, data_shape=(3,), batch_size=1, dtype="float64")
    with pytest.raises(MissingFileError, match=r"there is no file nosuch\.csv"):
        mx.io.CSVIter(data_csv="nosuch.csv", data_shape=(3,), batch_size=1)
    with pytest.raises(ValueError, match="is empty; there is nothing to read"):
        mx.io.CSVIter(data_csv=table("", "empty.csv"), data_shape=(3,), batch_size=1)
    with pytest.raises(ValueError, match="too few examples for a single batch"):
        mx.io.CSVIter(data_csv=table("\n \n", "blank.csv"), data_shape=(3,), batch_size=1)
    with pytest.raises(ValueError, match="batch_size is 0; it must be 1 or more"):
        mx.io.CSVIter(data_csv=path, data_shape=(3,), batch_size=0)
    with pytest.raises(ValueError, match=r"data_shape is \(3, 0\); the shape of an example is wanted"):
        mx.io.CSVIter(data_csv=path, data_shape=(3, 0), batch_size=1)
    with pytest.raises(TypeError, match="CSVIter takes no argument 'shuffle'; it takes data_csv"):
        mx.io.CSVIter(data_csv=path, data_shape=(3,), batch_size=1, shuffle=True)
    batches = mx.io.CSVIter(data_csv=path, data_shape=(3,), label_csv=table("1\n2\n", "few.csv"), batch_size=1)
    batches.next()
    batches.next()
    with pytest.raises(FileFormatError, match=r"few\.csv: there are 2 rows of labels, and more rows of data"):
        batches.next()


# ---- LibSVM


SPARSE = "1.0 0:0.5 2:1.2\n-2.0\n-3.0 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n"


def test_sparse_examples_become_dense(table):
    batches = mx.io.LibSVMIter(data_libsvm=table(SPARSE), data_shape=(3,), batch_size=3)
    first, second = list(batches)
    np.testing.assert_array_equal(first.data[0].asnumpy(), np.array([[0.5, 0, 1.2], [0, 0, 0], [0.6, 2.4, 1.2]], np.float32))
    np.testing.assert_array_equal(first.label[0].asnumpy(), [1, -2, -3])
    np.testing.assert_array_equal(second.data[0].asnumpy(), np.array([[0, 0, -1.2], [0.5, 0, 1.2], [0, 0, 0]], np.float32))
    assert (second.pad, second.index.tolist()) == (2, [3, 0, 1])
    batches.reset()
    assert [batch.index.tolist() for batch in batches] == [[2, 3, 0]]


def test_sparse_labels(table):
    label = table("1.0\n-2.0 0:0.125\n-3.0 2:1.2\n4 1:1.0 2:-1.2\n", "label")
    batches = mx.io.LibSVMIter(data_libsvm=table(SPARSE), data_shape=(3,), label_libsvm=label, label_shape=(3,), batch_size=3)
    found = batches.next().label[0].asnumpy()
    np.testing.assert_array_equal(found, np.array([[0, 0, 0], [0.125, 0, 0], [0, 0, 1.2]], np.float32))


def test_without_round_batch_zeros_fill_up(table):
    last = list(mx.io.LibSVMIter(data_libsvm=table(SPARSE), data_shape=(3,), batch_size=3, round_batch=False))[1]
    assert last.pad == 2
    assert last.data[0].asnumpy()[1:].max() == 0


def test_parts_of_a_file_are_those_of_mxnet(table):
    random = np.random.RandomState(1)
    lines = []
    for i in range(200):
        places = sorted(random.choice(20, random.randint(0, 6), replace=False))
        lines.append(f"{i} " + " ".join(f"{place}:{random.rand():.4g}" for place in places) + "\n")
    path = table("".join(lines), "many")
    for parts, begins in ((3, [0, 73, 133]), (7, [0, 31, 63, 90, 114, 147, 173])):
        found = []
        for part in range(parts):
            batches = mx.io.LibSVMIter(data_libsvm=path, data_shape=(20,), batch_size=4, num_parts=parts, part_index=part)
            own = [n for batch in batches for n in batch.label[0].asnumpy().astype(int).tolist()[: 4 - batch.pad]]
            found.append(own)
        assert [own[0] for own in found] == begins
        assert [number for own in found for number in own] == list(range(200))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 0:2 # 1:9\n\n# nothing\n2 1:3\n", [[2, 0, 0], [0, 3, 0]]),
        ("1 qid:7 0:2\n", [[2, 0, 0]]),
        ("1:0.5 0:2\n", [[2, 0, 0]]),
        ("1 2:1 0:5\n", [[5, 0, 1]]),
        ("1 1\n", [[0, 1, 0]]),
        ("1\t0:1  2:3 \r\n", [[1, 0, 3]]),
    ],
)
def test_what_counts_as_an_example(table, text, values):
    batches = mx.io.LibSVMIter(data_libsvm=table(text), data_shape=(3,), batch_size=1)
    np.testing.assert_array_equal([batch.data[0].asnumpy()[0] for batch in batches], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0:1\n2 3:1\n", "line 2: index 3; there are 3 features, numbered from 0"),
        ("1 -1:1\n", "line 1: index -1"),
        ("one 0:1\n", "line 1: a line is `label index:value index:value ...`"),
        ("1 0:x\n", "line 1: a line is"),
        ("1 0.5:2\n", "line 1: a line is"),
    ],
)
def test_what_is_no_example(table, text, message):
    with pytest.raises(FileFormatError, match=message):
        list(mx.io.LibSVMIter(data_libsvm=table(text), data_shape=(3,), batch_size=1))


def test_wrong_arguments_of_libsvm(table):
    path = table(SPARSE)
    for options in ({"data_shape": (3, 1)}, {"label_shape": (2,)}, {"label_libsvm": path}):
        with pytest.raises(ValueError, match="both have one axis, and label_shape is"):
            mx.io.LibSVMIter(**{"data_libsvm": path, "data_shape": (3,), "batch_size": 1, **options})
    with pytest.raises(DTypeError, match="batches are float32"):
        mx.io.LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=1, dtype="int32")
    with pytest.raises(FileFormatError, match="there are 1 labels, and more examples"):
        mx.io.LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=3, label_libsvm=table("1 0:1\n", "l"), label_shape=(2,))
