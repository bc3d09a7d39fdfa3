"""`python -m minimx im2rec`: lists and records as MXNet's tool makes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import __main__ as command_line
from minimx.codec import decode

from .pictures import JPEG, colour, file_of


@pytest.fixture
def im2rec(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["minimx", "im2rec", *map(str, arguments)])
        return command_line.main()

    return run


@pytest.fixture
def folder(tmp_path):
    """Pictures 0 to 6 in three folders below each other."""
    for number, name in enumerate(("top.png", "a/1.PNG", "a/2.jpg", "b/3.png", "b/c/4.png", "b/c/5.png", "b/c/6.jpeg")):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file_of(colour(number, (20, 40)), "JPEG" if "j" in name else "PNG"))
    (tmp_path / "pets" / "b" / "notes.txt").write_text("no picture")
    return tmp_path / "pets"


def records(name):
    reader = mx.recordio.MXIndexedRecordIO(f"{name}.idx", f"{name}.rec", "r")
    return {key: mx.recordio.unpack(reader.read_idx(key)) for key in reader.keys}


def test_lists(im2rec, folder, capsys):
    assert im2rec("--list", "--recursive", "out", "pets") == 0
    # the order of MXNet's tool, which always shuffles alike
    with open("out.lst") as file:
        assert file.read() == (
            "0\t0.000000\ttop.png\n4\t3.000000\tb/c/4.png\n2\t1.000000\ta/2.jpg\n6\t3.000000\tb/c/6.jpeg\n"
            "5\t3.000000\tb/c/5.png\n3\t2.000000\tb/3.png\n1\t1.000000\ta/1.PNG\n"
        ).replace("/", os.sep)
    assert "b/c 3" in capsys.readouterr().out.replace(os.sep, "/")
    assert im2rec("flat", "pets/b/c", "--list", "--no-shuffle", "--exts", ".png") == 0
    with open("flat.lst") as file:
        assert file.read() == "0\t0.000000\t4.png\n1\t0.000000\t5.png\n"


def test_parts_of_lists(im2rec, folder):
    assert im2rec("--list", "--recursive", "--chunks", 2, "--train-ratio", 0.5, "--test-ratio", 0.25, "out", "pets") == 0
    counts = {path.name: len(path.read_text().splitlines()) for path in sorted(Path().glob("*.lst"))}
    assert counts == {
        "out_0_test.lst": 1, "out_0_train.lst": 2, "out_0_val.lst": 1, "out_1_test.lst": 1, "out_1_train.lst": 2, "out_1_val.lst": 0,
    }  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_records(im2rec, folder, threads, capsys):
    im2rec("--list", "--recursive", "--no-shuffle", "out", "pets")
    assert im2rec("--num-thread", threads, "--encoding", ".png", "--quality", 3, "out", "pets") == 0
    assert "out.rec: 7 images" in capsys.readouterr().out
    found = records("out")
    assert list(found) == list(range(7))
    for number, (header, data) in found.items():
        assert (header.flag, header.label, header.id) == (0, [0, 1, 1, 2, 3, 3, 3][number], number)
        pixels = decode(data)
        assert data.startswith(b"\x89PNG")
        np.testing.assert_allclose(pixels.astype(int), colour(number, (20, 40)).astype(int), atol=3)
    iterator = mx.image.ImageIter(7, (3, 8, 8), path_imgrec="out.rec", path_imgidx="out.idx")
    assert iterator.next().label[0].asnumpy().tolist() == [0, 1, 1, 2, 3, 3, 3]


def test_ways_to_store(im2rec, folder):
    im2rec("--list", "--recursive", "--no-shuffle", "out", "pets")
    for options, shape in (
        (("--resize", 10), (10, 20, 3)),
        (("--center-crop",), (20, 20, 3)),
        (("--center-crop", "--resize", 10), (10, 10, 3)),
        (("--color", 0), (20, 40, 1)),
        (("--pass-through",), (20, 40, 3)),
    ):
        assert im2rec(*options, "out", "pets") == 0
        data = records("out")[3][1]
        assert decode(data, -1).shape == shape
        assert (data == (folder / "b" / "3.png").read_bytes()) == (options == ("--pass-through",))
    tall = folder / "tall.png"
    tall.write_bytes(file_of(colour(1, (40, 20))))
    with open("tall.lst", "w") as file:
        file.write("9\t1\ttall.png\n")
    assert im2rec("--resize", 10, "tall", "pets") == 0
    assert decode(records("tall")[9][1]).shape == (20, 10, 3)


def test_several_labels(im2rec, folder):
    with open("out.lst", "w") as file:
        file.write("5\t1\t2.5\ta/1.PNG\n")
    assert im2rec("out", "pets") == 0
    assert records("out")[5][0].label == 1
    assert im2rec("--pack-label", "out", "pets") == 0
    assert records("out")[5][0].label.tolist() == [1, 2.5]


def test_all_lists_of_a_prefix(im2rec, folder):
    im2rec("--list", "--recursive", "--train-ratio", 0.5, "out", "pets")
    assert im2rec("out", "pets") == 0
    assert sorted(name for name in os.listdir() if name.endswith(".rec")) == ["out_train.rec", "out_val.rec"]


def test_images_that_cannot_be_read(im2rec, folder, capsys):
    (folder / "a" / "1.PNG").write_bytes(JPEG[:200])
    im2rec("--list", "--recursive", "--no-shuffle", "out", "pets")
    (folder / "top.png").unlink()
    assert im2rec("out", "pets") == 1
    printed = capsys.readouterr()
    assert "out.rec: 5 images, 2 left out" in printed.out
    assert "top.png is left out: " in printed.err
    assert "1.PNG is left out: " in printed.err
    assert list(records("out")) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(("arguments", "message"), [
    (("out", "pets"), r"there is no list .*out\*\.lst; make one with --list"),
    (("--list", "out", "nowhere"), "there is no folder nowhere"),
    (("out", "pets", "--list", "--recursive", "--exts", ".bmp"), r"pets has no image that ends in \.bmp"),
    (("out", "pets", "--list", "--exts", ".jpg"), "--recursive looks into the folders below it, too"),
    (("--list", "--train-ratio", 0.8, "--test-ratio", 0.4, "out", "pets"), "ratios from 0 that make 1 at most"),
    (("--list", "--chunks", 0, "out", "pets"), "at least one chunk is wanted"),
    (("--list", "none/out", "pets"), "the folder .*none is not there"),
])  # fmt: skip
def test_bad_requests(im2rec, folder, capsys, arguments, message):
    assert im2rec(*arguments) == 1
    assert re.search(message, capsys.readouterr().err)


def test_a_malformed_list(im2rec, folder, capsys):
    with open("out.lst", "w") as file:
        file.write("1\ttop.png\n")
    assert im2rec("out", "pets") == 1
    assert "out.lst: line 1: number, labels, path with tabs between are wanted" in capsys.readouterr().err
    assert not os.path.exists("out.rec")


def test_interrupted(im2rec, folder, monkeypatch):
    """What is there then does not look whole."""
    im2rec("--list", "--recursive", "--no-shuffle", "out", "pets")
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return b"record"

    monkeypatch.setattr(mx.image.im2rec, "make_record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        im2rec("out", "pets")
    assert not os.path.exists("out.idx")
    with pytest.raises(mx.MXNetError):
        list(iter(mx.recordio.MXRecordIO("out.rec", "r").read, None))


def test_from_a_shell(folder):
    done = subprocess.run(
        [sys.executable, "-m", "minimx", "im2rec", "--list", "--recursive", "out", "pets"], cwd=folder.parent, check=True, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    assert "out.lst: 7 images" in done.stdout
