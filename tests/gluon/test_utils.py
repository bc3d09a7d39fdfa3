"""Splitting batches over devices, clipping gradients, hashes of files."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd
from minimx.gluon import utils


@pytest.mark.parametrize(
    ("rows", "parts", "axis", "even"), [(8, 4, 0, True), (7, 3, 0, False), (3, 1, 0, True), (6, 3, 1, True), (7, 3, 1, False)]
)
def test_split_data(rows, parts, axis, even):
    x = nd.array(np.random.default_rng(0).normal(size=(rows, 7) if axis == 0 else (2, rows)))
    found = utils.split_data(x, parts, axis, even)
    wanted = np.array_split(x.asnumpy(), parts, axis)
    assert len(found) == parts
    for part, other in zip(found, wanted):
        np.testing.assert_array_equal(part.asnumpy(), other)


def test_split_data_shares_memory_and_gradients():
    x = nd.zeros((4, 2))
    utils.split_data(x, 2)[1][:] = 1
    assert x.asnumpy().tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]
    x.attach_grad()
    with autograd.record():
        loss = utils.split_data(x, 2)[0].sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]


def test_split_data_refuses():
    with pytest.raises(ValueError, match="cannot be split evenly into 3 slices"):
        utils.split_data(nd.ones((4, 2)), 3)
    with pytest.raises(ValueError, match="at least 1"):
        utils.split_data(nd.ones((4, 2)), 0)


def test_split_and_load():
    contexts = [mx.cpu(0), mx.cpu(1)]
    for data in (nd.ones((4, 2)), np.ones((4, 2)), [[1, 1]] * 4):
        parts = utils.split_and_load(data, contexts)
        assert [part.context for part in parts] == contexts
        assert [part.shape for part in parts] == [(2, 2)] * 2
    assert [part.shape for part in utils.split_and_load(nd.ones((3, 5)), contexts, batch_axis=1, even_split=False)] == [
        (3, 3),
        (3, 2),
    ]
    assert utils.split_and_load(nd.ones((3, 5)), [mx.cpu(1)])[0].context == mx.cpu(1)


@pytest.mark.parametrize("check_isfinite", [True, False])
def test_clip_global_norm(check_isfinite):
    arrays = [nd.ones((3, 3)), nd.ones((4, 4), ctx=mx.cpu(1))]
    assert utils.clip_global_norm(arrays, 1.0, check_isfinite) == 5.0
    for array in arrays:
        np.testing.assert_allclose(array.asnumpy(), 0.2, rtol=1e-6)
    utils.clip_global_norm(arrays, 10.0, check_isfinite)
    np.testing.assert_allclose(arrays[1].asnumpy(), 0.2, rtol=1e-6)


def test_clip_global_norm_of_what_is_no_number():
    arrays = [nd.array([1, float("nan")])]
    with pytest.warns(UserWarning, match="nan or inf is detected"):
        utils.clip_global_norm(arrays, 1.0)
    utils.clip_global_norm(arrays, 1.0, check_isfinite=False).asnumpy()
    with pytest.raises(ValueError, match="empty"):
        utils.clip_global_norm([], 1.0)


def test_check_sha1(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(b"x" * 3_000_000)
    digest = hashlib.sha1(b"x" * 3_000_000).hexdigest()
    assert utils.check_sha1(str(file), digest)
    assert not utils.check_sha1(str(file), digest[:-1] + "x")


def test_text_helpers():
    assert utils.brief_list("abc") == "'a', 'b', 'c'"
    assert utils.brief_list(range(20)) == "'0', '1', '2', ..., '17', '18', '19'"
    assert utils.indented("a\nb\nc", 2) == "a\n  b\n  c"


def test_replace_file(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    utils.replace_file(new, old)
    assert (old.read_bytes(), new.exists()) == (b"new", False)
    new.write_bytes(b"new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        utils.replace_file(new, tmp_path / "folder")
    assert not new.exists()


def test_shape_is_known():
    assert utils.shape_is_known((1, 2))
    assert not any(utils.shape_is_known(shape) for shape in [None, (), (0, 1), (3, 0)])
    for shape in [(-1,), "ab", (1.5,)]:
        with pytest.raises(ValueError, match="shape"):
            utils.shape_is_known(shape)
    with pytest.raises(AssertionError):
        utils.shape_is_known((-1,))
