"""A network outside Python: its ONNX file runs in Node, in ONNX Runtime for browsers, with the same numbers.

`make node` installs what it needs beside the virtual environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minimx import gluon, init, nd
from minimx.gluon import nn, rnn

from .support import exported

#: Where packages of Node may be: where `make node` puts them, and where the user says.
FOLDERS = [
    Path(sys.prefix) / "node" / "node_modules",
    *map(Path, filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep))),
]


@pytest.fixture
def node() -> Any:
    """Runs the script beside this file."""
    program = shutil.which("node")
    folder = next((each for each in FOLDERS if (each / "onnxruntime-web").is_dir()), None)
    if program is None or folder is None:
        pytest.skip("needs Node and its package onnxruntime-web: make node")

    def run(model: str, x: np.ndarray, tmp_path: Path) -> np.ndarray:
        given = tmp_path / "input.json"
        given.write_text(json.dumps({"shape": x.shape, "numbers": x.reshape(-1).tolist()}))
        command = [program, str(Path(__file__).with_name("run.js")), model, str(given)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=100, env={**os.environ, "NODE_PATH": str(folder)}, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return np.array(found["numbers"], "float32").reshape(found["shape"])

    return run


def pictures() -> tuple[gluon.HybridBlock, np.ndarray]:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1, activation="relu"),
        nn.BatchNorm(),
        nn.MaxPool2D(3, 2, ceil_mode=True),
        nn.Dropout(0.5),
        nn.Dense(5),
    )
    return net, np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")


def words() -> tuple[gluon.HybridBlock, np.ndarray]:
    net = nn.HybridSequential()
    net.add(nn.Embedding(10, 4), rnn.GRU(5, bidirectional=True, input_size=4), nn.LayerNorm(), nn.Dense(2, flatten=False))
    return net, np.random.default_rng(0).integers(0, 10, (6, 2)).astype("float32")


@pytest.mark.parametrize("make", [pictures, words])
def test_a_network_in_javascript(make: Any, node: Any, tmp_path: Path) -> None:
    net, x = make()
    net.initialize(init.Normal(0.5))
    expected = net(nd.array(x)).asnumpy()
    path = exported(net, [nd.array(x)], tmp_path)
    np.testing.assert_allclose(node(path, x, tmp_path), expected, rtol=1e-4, atol=1e-4)
