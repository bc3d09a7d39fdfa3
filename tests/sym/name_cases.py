"""Functions that make nodes, and calls of them from which automatic names follow, for MXNet and for minimx alike.

tests/record_automatic_names.py records with MXNet what tests/sym/test_automatic_names.py compares.
"""

import inspect
import json
import operator

MODULES = ("", "contrib", "image", "linalg", "op", "random", "sparse")

#: They make no node, or many: variables, groups, files, and loops, whose names tests/sym/test_control_flow.py knows.
OTHERS = frozenset({
    "Custom", "Group", "Variable", "check_call", "cond", "foreach", "histogram", "load", "load_json", "loads", "rand_zipfian", "var",
    "while_loop",
})  # fmt: skip

#: What MXNet has written in Python is called with what it wants; so is what has no name in a module that one may look into.
CALLS = {
    "arange": lambda F, x, y: F.arange(3),
    "eye": lambda F, x, y: F.eye(3),
    "full": lambda F, x, y: F.full((2,), 3),
    "hypot": lambda F, x, y: F.hypot(x, y),
    "linspace": lambda F, x, y: F.linspace(0, 1, 3),
    "maximum": lambda F, x, y: F.maximum(x, y),
    "minimum": lambda F, x, y: F.minimum(x, y),
    "ones": lambda F, x, y: F.ones((2,)),
    "pow": lambda F, x, y: F.pow(x, y),
    "power": lambda F, x, y: F.power(x, y),
    "split_v2": lambda F, x, y: F.split_v2(x, 2),
    "zeros": lambda F, x, y: F.zeros((2,)),
    "contrib.adamw_update": lambda F, x, y: F.contrib.adamw_update(x, y, x, x, y, 0.1, 1.0),
    "contrib.mp_adamw_update": lambda F, x, y: F.contrib.mp_adamw_update(x, y, x, x, x, y, 0.1, 1.0),
    "random.multinomial": lambda F, x, y: F.random.multinomial(x),
    "random.randint": lambda F, x, y: F.random.randint(0, 3),
    "random.randn": lambda F, x, y: F.random.randn(2),
    "random.shuffle": lambda F, x, y: F.random.shuffle(x),
    "random.uniform(x, y)": lambda F, x, y: F.random.uniform(x, y),
    "random.normal(x, y)": lambda F, x, y: F.random.normal(x, y),
    "random.gamma(x, y)": lambda F, x, y: F.random.gamma(x, y),
    "random.exponential(x)": lambda F, x, y: F.random.exponential(x),
    "random.poisson(x)": lambda F, x, y: F.random.poisson(x),
    "random.negative_binomial(x, y)": lambda F, x, y: F.random.negative_binomial(x, y),
    "random.generalized_negative_binomial(x, y)": lambda F, x, y: F.random.generalized_negative_binomial(x, y),
    "_internal._plus_scalar(x)": lambda F, x, y: F._internal._plus_scalar(x, scalar=2),
    "_internal._PlusScalar(x)": lambda F, x, y: F._internal._PlusScalar(x, scalar=2),
    "_internal._copy(x)": lambda F, x, y: F._internal._copy(x),
    "_internal._shuffle(x)": lambda F, x, y: F._internal._shuffle(x),
    "_internal._random_normal()": lambda F, x, y: F._internal._random_normal(),
    "_internal._sample_normal(x, y)": lambda F, x, y: F._internal._sample_normal(x, y),
    "x + y": lambda F, x, y: x + y,
    "x + 2": lambda F, x, y: x + 2,
    "2 - x": lambda F, x, y: 2 - x,
    "x > y": lambda F, x, y: x > y,
    "-x": lambda F, x, y: -x,
    "x.flip()": lambda F, x, y: x.flip(axis=0),
    "x.broadcast_axes()": lambda F, x, y: x.broadcast_axes(axis=0, size=2),
    "x.split()": lambda F, x, y: x.split(num_outputs=2),
    "x.slice()": lambda F, x, y: x.slice(begin=(0,), end=(1,)),
    "x.sum()": lambda F, x, y: x.sum(),
    "x.pick()": lambda F, x, y: x.pick(y),
    "x.swapaxes()": lambda F, x, y: x.swapaxes(0, 1),
}

#: Graphs of which the operators and names are recorded, as `tojson` writes them.
GRAPHS = {
    "BatchNorm_v1": lambda F, x, y: F.BatchNorm_v1(x),
    "BlockGrad": lambda F, x, y: F.BlockGrad(x),
    "Convolution_v1": lambda F, x, y: F.Convolution_v1(x, kernel=(3, 3), num_filter=2),
    "ElementWiseSum": lambda F, x, y: F.ElementWiseSum(x, y),
    "Pooling_v1": lambda F, x, y: F.Pooling_v1(x, kernel=(2, 2)),
    "SliceChannel": lambda F, x, y: F.SliceChannel(x, num_outputs=2),
    "Softmax": lambda F, x, y: F.Softmax(x),
    "SwapAxis": lambda F, x, y: F.SwapAxis(x, dim1=0, dim2=1),
    "broadcast_axes": lambda F, x, y: F.broadcast_axes(x, axis=0, size=2),
    "broadcast_plus": lambda F, x, y: F.broadcast_plus(x, y),
    "choose_element_0index": lambda F, x, y: F.choose_element_0index(x, y),
    "crop": lambda F, x, y: F.crop(x, begin=(0,), end=(1,)),
    "ctc_loss": lambda F, x, y: F.ctc_loss(x, y),
    "flip": lambda F, x, y: F.flip(x, axis=0),
    "linalg_gemm2": lambda F, x, y: F.linalg_gemm2(x, y),
    "max_axis": lambda F, x, y: F.max_axis(x, axis=0),
    "normal": lambda F, x, y: F.normal(shape=(2,)),
    "random_pdf_normal": lambda F, x, y: F.random_pdf_normal(x, y, y),
    "sample_normal": lambda F, x, y: F.sample_normal(x, y),
    "shuffle": lambda F, x, y: F.shuffle(x),
}


def nodes(symbol):
    """Of each node in a graph's JSON the operator and the name."""
    return [[node["op"], node["name"]] for node in json.loads(symbol.tojson())["nodes"]]


def functions(sym):
    """The paths of the functions of `sym` and its modules that make nodes: `linalg.gemm2`."""
    found = []
    for module in MODULES:
        names = operator.attrgetter(module)(sym) if module else sym
        for name in dir(names):
            if not name.startswith("_") and name not in OTHERS and inspect.isfunction(getattr(names, name)):
                found.append((module + "." + name).lstrip("."))
    return found
