"""minimx exports networks, MXNet 1.9.1 loads and runs them: is what MXNet computes what minimx computes?

    python tests/roundtrip_mxnet.py PYTHON_WITH_MXNET

writes tests/data/roundtrip_mxnet.json: for each network the checksums of both files, what MXNet computed, and the largest difference.
Parameters and inputs are fractions that every machine makes alike, so that tests/gluon/test_roundtrip.py can export the same files again
and compare, where there is no MXNet.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import nn

RECORD = Path(__file__).parent / "data" / "roundtrip_mxnet.json"

#: Relative to the largest value. Sums of float32 in another order, of up to 400 terms.
TOLERANCE = 1e-5

#: Run by the interpreter that has MXNet, in the folder with the files. It prints JSON.
IN_MXNET = """
import json, sys, warnings
import numpy, mxnet
warnings.simplefilter("ignore")
found = {}
for name, count in json.loads(sys.argv[1]).items():
    inputs = [mxnet.nd.array(numpy.load(f"{name}-input{i}.npy")) for i in range(count)]
    names = [f"data{i}" for i in range(count)] if count > 1 else ["data"]
    net = mxnet.gluon.SymbolBlock.imports(f"{name}-symbol.json", names, f"{name}-0000.params")
    outputs = net(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    with mxnet.autograd.record():
        trained = net(*inputs)
    mxnet.autograd.backward(trained)  # layers that keep statistics move them
    with open(f"{name}-symbol.json") as file:
        same = mxnet.sym.load(f"{name}-symbol.json").tojson() == file.read()
    moved = net(*inputs)
    moved = moved if isinstance(moved, list) else [moved]
    found[name] = {
        "same_text": same, "outputs": [y.asnumpy().ravel().tolist() for y in outputs],
        "after_training": [y.asnumpy().ravel().tolist() for y in moved],
    }
print(json.dumps({"mxnet": mxnet.__version__, "numpy": numpy.__version__, "networks": found}))
"""


# ---- networks


class LeNet(gluon.HybridBlock):
    """Convolutions and poolings of several kinds, and fully connected layers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential()
            with self.features.name_scope():
                self.features.add(
                    nn.Conv2D(4, 5, padding=2, activation="tanh"), nn.AvgPool2D(2, 2), nn.Conv2D(6, 3, strides=2, groups=2),
                    nn.LeakyReLU(0.1), nn.MaxPool2D(3, 2, ceil_mode=True), nn.Flatten(),
                )  # fmt: skip
            self.hidden = nn.Dense(8, activation="sigmoid")
            self.output = nn.Dense(3)

    def hybrid_forward(self, F, x):
        return self.output(self.hidden(self.features(x)))


class Residual(gluon.HybridBlock):
    """Convolution, BatchNorm, and sums: one of equal shapes, one that broadcasts."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.first = nn.Conv2D(4, 3, padding=1, use_bias=False)
            self.norm = nn.BatchNorm()
            self.second = nn.Conv2D(4, 3, padding=1)
            self.norm2 = nn.BatchNorm(scale=False, epsilon=1e-3)
            self.pool = nn.GlobalAvgPool2D()
            self.output = nn.Dense(3)

    def hybrid_forward(self, F, x):
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(self.norm2(self.second(x)) + x)
        return self.output(x * self.pool(x) + 1)


class Perceptron(gluon.HybridBlock):
    """Dropout, operators with numbers, several outputs."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.hidden = nn.Dense(6, activation="relu")
            self.dropout = nn.Dropout(0.5)
            self.output = nn.Dense(4, flatten=False)

    def hybrid_forward(self, F, x, y):
        hidden = self.dropout(self.hidden(x)) ** 2 / 3
        return F.softmax(self.output(1 - hidden)), F.concat(
            hidden.sum(axis=1, keepdims=True), y.max(axis=1, keepdims=True), dim=1
        )


class Norms(gluon.HybridBlock):
    """The other normalizations."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.instance = nn.InstanceNorm(scale=True)
            self.group = nn.GroupNorm(num_groups=2)
            self.layer = nn.LayerNorm()
            self.prelu = nn.PReLU()

    def hybrid_forward(self, F, x):
        return self.prelu(self.layer(self.group(self.instance(x)))).transpose((0, 2, 1)).reshape((0, -1))


class Words(gluon.HybridBlock):
    """An embedding, and attention over the words."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.embedding = nn.Embedding(10, 4)
            self.output = nn.Dense(3, flatten=False)

    def hybrid_forward(self, F, x):
        words = self.embedding(x)
        weights = F.softmax(F.batch_dot(words, words, transpose_b=True) / 2, axis=-1)
        return self.output(F.batch_dot(weights, words)).slice_axis(axis=1, begin=0, end=2)


def fractions(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers between -1 and 1 in no visible order, the same on every machine."""
    count = int(np.prod(shape))
    return (((np.arange(count) * 7919 + seed * 104729 + 13) % 2003) / 1001.5 - 1).reshape(shape).astype(np.float32)


#: Names, how to make them, and their inputs.
NETWORKS: dict[str, tuple[Callable[..., gluon.HybridBlock], list[np.ndarray]]] = {
    "lenet": (LeNet, [fractions((2, 2, 20, 20), 1)]),
    "residual": (Residual, [fractions((3, 2, 6, 5), 2)]),
    "perceptron": (Perceptron, [fractions((3, 5), 3), fractions((3, 4), 4)]),
    "norms": (Norms, [fractions((2, 4, 3), 5)]),
    "words": (Words, [np.arange(12, dtype=np.float32).reshape(3, 4) % 10]),
}


def made(name: str) -> gluon.HybridBlock:
    """The network, with its parameters, hybridized and called."""
    make, inputs = NETWORKS[name]
    net = make(prefix=f"{name}_")
    net.initialize()
    net.hybridize()
    net(*map(nd.array, inputs))
    for seed, (key, param) in enumerate(net.collect_params().items()):
        values = fractions(param.shape, seed)
        param.set_data(nd.array(abs(values) + 0.5 if key.endswith(("gamma", "var")) else values))
    return net


def outputs_of(net: gluon.HybridBlock, name: str) -> list[np.ndarray]:
    """What the network computes, as flat arrays."""
    found = net(*map(nd.array, NETWORKS[name][1]))
    return [each.asnumpy().ravel() for each in (found if isinstance(found, (list, tuple)) else [found])]


def outputs_after_training(net: gluon.HybridBlock, name: str) -> list[np.ndarray]:
    """The same after a forward and a backward pass, in which layers that keep statistics move them."""
    with autograd.record():
        outputs = net(*map(nd.array, NETWORKS[name][1]))
    autograd.backward(list(outputs) if isinstance(outputs, (list, tuple)) else outputs)
    return outputs_of(net, name)


def checksum(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def difference(one: list[np.ndarray], other: list[list[float]]) -> float:
    """The largest difference, relative to the largest value."""
    pairs = list(zip(one, map(np.array, other)))
    assert len(one) == len(other)
    assert all(got.shape == wanted.shape for got, wanted in pairs)
    return max(float(np.abs(got - wanted).max() / np.abs(wanted).max()) for got, wanted in pairs)


# ---- with MXNet


def main(python: str) -> int:
    """Export, let MXNet run what was exported, compare, and write the record. **Returns** the exit code."""
    networks = {name: made(name) for name in NETWORKS}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: net.export(f"{folder}/{name}") for name, net in networks.items()}
        for name, (_, inputs) in NETWORKS.items():
            for number, values in enumerate(inputs):
                np.save(f"{folder}/{name}-input{number}.npy", values)
        counts = json.dumps({name: len(inputs) for name, (_, inputs) in NETWORKS.items()})
        run = subprocess.run([python, "-c", IN_MXNET, counts], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        record = json.loads(run.stdout.splitlines()[-1])
        agree = True
        for name, entry in record["networks"].items():
            entry["symbol_sha256"], entry["params_sha256"] = map(checksum, files[name])
            entry["max_difference"] = max(
                difference(outputs_of(networks[name], name), entry["outputs"]),
                difference(outputs_after_training(networks[name], name), entry["after_training"]),
            )
            good = entry["max_difference"] <= TOLERANCE and entry["same_text"]
            agree = agree and good
            print(f"{name}: {'agrees' if good else 'DIFFERS'}, {entry['max_difference']:.1e} of the largest value")
    record["minimx"], record["machine"] = mx.__version__, platform.machine()
    if agree:
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if agree else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
