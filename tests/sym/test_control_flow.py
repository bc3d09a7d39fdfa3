"""foreach, while_loop and cond in graphs: against MXNet's own graphs and values, and against arrays, in every way in which a graph can run.

golden/control_flow.json was recorded from MXNet 1.9.1: the JSON of some graphs, inputs, head gradients, outputs (without rows that MXNet
does not initialize) and gradients.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, gluon, nd, sym
from minimx.attribute import AttrScope
from minimx.base import ArgumentError, FileFormatError, MXNetError, ShapeError
from minimx.gluon import nn
from minimx.name import NameManager

GOLDEN = {case["name"]: case for case in json.loads((Path(__file__).parent / "golden" / "control_flow.json").read_text())}
for each in GOLDEN.values():
    each["symbol"] = "\n".join(each["symbol"])


def close(got, wanted, rtol=1e-5):
    np.testing.assert_allclose(got, wanted, rtol, 1e-6)


# ---- MXNet's graphs


def rnn_cell(x, t):
    h = sym.tanh(sym.FullyConnected(x, num_hidden=3, name="i2h") + sym.FullyConnected(t, num_hidden=3, no_bias=True, name="h2h"))
    return h, h


def two_lists(xs, ts):
    a, b = sym.split(xs[0], num_outputs=2)
    return [a * ts[0], [b + ts[1][0]]], [ts[0] + a, [ts[1][0] - b * xs[1]]]


def mxnet_graphs():
    """The graphs of the golden file, made in the order in which they were recorded: their names count."""
    var, contrib = sym.var, sym.contrib
    d, st, w, i, x, a, b = var("data"), var("state"), var("w"), var("i"), var("x"), var("a"), var("b")
    o, f = contrib.foreach(lambda x, t: (x + t[0] * w, [t[0] * 2]), d, [st])
    found = {"foreach": sym.Group([o, *f])}
    outer = sym.tanh(w)
    o, f = contrib.foreach(lambda x, t: ([x * outer, t[0] + x], [t[0] * outer + x]), d, [st], name="loop")
    found["foreach_cut"] = sym.Group([*o, f[0] * outer])
    o, f = contrib.foreach(rnn_cell, d, st)
    found["rnn"] = sym.Group([o, f])
    o, f = contrib.foreach(two_lists, [d, var("more")], [st, [var("other")]])
    found["foreach_lists"] = sym.Group([o[0], o[1][0], f[0], f[1][0]])
    o, f = contrib.while_loop(lambda i, x: i < 3, lambda i, x: ([x * w], [i + 1, x + w * x]), [i, x], max_iterations=5)
    found["while"] = sym.Group([*o, *f])
    c = contrib.cond(sym.sum(a * b) < 5, lambda: (a + 5) * (b + 5) * w, lambda: (a - 5) * (b - 5))
    found["cond_then"] = c
    c = contrib.cond(sym.max(a) > 0, lambda: [sym.exp(a), outer], lambda: [b, a])
    found["cond_two"] = sym.Group([c[0] * 2, c[1]])

    def body(x, t):
        o2, f2 = contrib.foreach(lambda y, r: (y * w + r, r * y), x, t)
        return o2, f2 + 0 * w

    o, f = contrib.foreach(body, d, st)
    found["nested_foreach"] = sym.Group([o, f])

    def step(i, x):
        r = contrib.cond(sym.sum(x) > 0, lambda: x * w - 1, lambda: x + w)
        return r, [i + 1, r]

    o, f = contrib.while_loop(lambda i, x: i < 4, step, [i, x], max_iterations=4)
    found["cond_in_while"] = sym.Group([o, *f])
    return found


def test_graphs_are_written_as_mxnet_writes_them(monkeypatch):
    monkeypatch.setattr(AttrScope, "_subgraph_names", collections.defaultdict(int))
    with NameManager():
        graphs = mxnet_graphs()
    for name, graph in graphs.items():
        assert graph.tojson() == GOLDEN[name]["symbol"], name


@pytest.mark.parametrize("name", GOLDEN)
def test_files_of_mxnet(name):
    case = GOLDEN[name]
    graph = sym.load_json(case["symbol"])
    assert graph.tojson() == case["symbol"]
    assert graph.list_arguments() == case["arguments"]
    assert graph.list_outputs() == case["outputs_names"]
    args = {key: nd.array(value) for key, value in case["args"].items()}
    shapes = graph.infer_shape(**{key: array.shape for key, array in args.items()})
    assert [list(shape) for shape in shapes[1]] == case["shapes"]
    executor = graph.simple_bind(mx.cpu(), **{key: array.shape for key, array in args.items()})
    outputs = executor.forward(is_train=True, **args)
    executor.backward([nd.array(each) for each in case["head_grads"]])
    for output, wanted in zip(outputs, case["outputs"]):
        close(output.asnumpy()[: len(wanted)], wanted)
        assert not output.asnumpy()[len(wanted) :].any()  # rows that no step has written
    for key, wanted in case["grads"].items():
        close(executor.grad_dict[key].asnumpy(), wanted)


# ---- blocks: every way to run them


class Loop(gluon.HybridBlock):
    """A block around one function of (F, self, inputs...)."""

    def __init__(self, function, **children):
        super().__init__()
        self.function = function
        with self.name_scope():
            for name, make in children.items():
                setattr(self, name, make())

    def hybrid_forward(self, F, *inputs):
        return self.function(F, self, *inputs)


def flat(value):
    return [leaf for each in value for leaf in flat(each)] if isinstance(value, (list, tuple)) else [value]


def observed(run, inputs, params):
    """Outputs of a call, and the gradients of a random projection of them."""
    inputs = [nd.array(value) for value in inputs]
    for array in inputs:
        array.attach_grad()
    for param in params:
        param.zero_grad()
    mx.random.seed(3)
    with autograd.record():
        outputs = flat(run(*inputs))
        total = sum(((output * (index + 1)).sin().sum() for index, output in enumerate(outputs)), start=nd.zeros((1,)))
    total.backward()
    return [array.asnumpy() for array in (*outputs, *(each.grad for each in inputs), *(param.grad() for param in params))]


def trained(net):
    return [param for param in net.collect_params().values() if param.grad_req != "null"]


def agree(tmp_path, make, *inputs, others=()):
    """Arrays, a hybridized block, its file, the engines and an executor: equal outputs and gradients. `others`: for the same trace."""
    net = make()
    net.initialize(mx.init.Uniform(0.5))
    net.hybridize()
    net(*[nd.array(value) for value in inputs])  # deferred shapes follow from the graph alone
    for values in (inputs, *others):
        net.hybridize(False)
        wanted = observed(net, values, trained(net))

        def same(got, wanted=wanted):
            assert len(got) == len(wanted)
            for index, (one, other) in enumerate(zip(got, wanted)):
                assert one.shape == other.shape, index
                close(one, other)

        net.hybridize()
        same(observed(net, values, trained(net)))
        for scope in (engine.naive, engine.lazy):
            with scope():
                same(observed(net, values, trained(net)))
        net.hybridize(static_alloc=True)
        same(observed(net, values, trained(net)))
        files = net.export(str(tmp_path / "net"))
        names = ["data"] if len(values) == 1 else [f"data{number}" for number in range(len(values))]
        loaded = gluon.SymbolBlock.imports(files[0], names, files[1])
        same(observed(loaded, values, [loaded.collect_params()[param.name] for param in trained(net)]))
        graph = sym.Group(flat(net(*[sym.var(name) for name in names])))
        executor = graph.simple_bind(mx.cpu(), **dict(zip(names, [np.shape(value) for value in values])))
        for name, param in net.collect_params().items():
            (executor.arg_dict if name in executor.arg_dict else executor.aux_dict)[name][:] = param.data()
        outputs = executor.forward(is_train=True, **dict(zip(names, map(nd.array, values))))
        for output, other in zip(outputs, wanted):
            close(output.asnumpy(), other)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def dense():
    return nn.Dense(3, flatten=False)


@pytest.mark.parametrize("lengths", [(1, 4), (3, 2, 8)])
def test_rnn_over_several_lengths(tmp_path, lengths):
    def function(F, self, x, h):
        def body(row, state):
            state = F.tanh(self.i2h(row) + self.h2h(state))
            return state * 2, state

        return F.contrib.foreach(body, x, h)

    inputs = [(numbers(length, 2, 4, seed=length), numbers(2, 3)) for length in lengths]
    agree(tmp_path, lambda: Loop(function, i2h=dense, h2h=dense), *inputs[0], others=inputs[1:])


def first(F, x):
    """The first row, as a graph can say it."""
    return F.slice_axis(x, axis=0, begin=0, end=1).reshape((-1,))


STRUCTURES = {
    "list of states": lambda F, x, s: F.contrib.foreach(lambda r, t: (r * t[0] + t[1], [t[1] + r, t[0] * 0.5]), x, [s, s + 1]),
    "nested states": lambda F, x, s: F.contrib.foreach(
        lambda r, t: ([r * t[0], [t[1][0]]], [t[1][0], [t[0] + r]]), x, [s, [s * 2]]
    ),
    "no states": lambda F, x, s: F.contrib.foreach(lambda r, t: (r * s, t), x, []),
    "no outputs": lambda F, x, s: F.contrib.foreach(lambda r, t: ([], t * r), x, s),
    "data are not used": lambda F, x, s: F.contrib.foreach(lambda r, t: (t.exp(), t * 0.5), x, s),
    "states are returned": lambda F, x, s: F.contrib.foreach(lambda r, t: (r, t), x, s),
    "a value from outside": lambda F, x, s: F.contrib.foreach(lambda r, t: (r + s, F.broadcast_add(t, x.sum())), x, s),
    "one array twice": lambda F, x, s: F.contrib.foreach(lambda r, t: (r[0] * r[1], t + r[0]), [x, x], s),
    "several data": lambda F, x, s: F.contrib.foreach(lambda r, t: (r[0] - r[1][0] * t, t), [x, [x * x]], s),
    "one axis": lambda F, x, s: F.contrib.foreach(lambda r, t: (r * t, t + r), x.sum(axis=1), s.sum(axis=0, keepdims=True)),
    "several outputs of one operator": lambda F, x, s: F.contrib.foreach(
        lambda r, t: (F.split(r + s, num_outputs=2, axis=0), t), F.split(x, num_outputs=2, axis=1)[0].broadcast_like(x), []
    ),
    "data of several outputs": lambda F, x, s: F.contrib.foreach(
        lambda r, t: (r[0] + r[1] * t, t), F.split(x, num_outputs=2, axis=1), s.sum(axis=0, keepdims=True)
    ),
    "in a row": lambda F, x, s: F.contrib.foreach(
        lambda r, t: (r + t, t * 2), *F.contrib.foreach(lambda r, t: (r * t, t + 1), x, s)
    ),
    "an outer state is a free value": lambda F, x, s: F.contrib.foreach(
        lambda r, t: F.contrib.foreach(lambda q, u: (q * t, u + t * r), x, t), x, s
    ),
    "foreach in foreach": lambda F, x, s: F.contrib.foreach(
        lambda r, t: F.contrib.foreach(lambda q, u: (q * s.sum(), u * q), r, t), x.expand_dims(2), s.sum(axis=0, keepdims=True)
    ),
    "cond in foreach": lambda F, x, s: F.contrib.foreach(
        lambda r, t: (F.contrib.cond(r.sum() > 0, lambda: r * t, lambda: t - s), t + r), x, s
    ),
    "while in foreach": lambda F, x, s: F.contrib.foreach(
        lambda r, t: F.contrib.while_loop(
            lambda u: (u * u).sum() < 4, lambda u: (u * r, u * 1.5 + 0.1), F.clip(t, -0.5, 0.5), max_iterations=6
        ),
        x,
        s,
    ),
    "while": lambda F, x, s: F.contrib.while_loop(
        lambda i, u: i < 3, lambda i, u: (u * s, [i + 1, u * first(F, x)]), [F.zeros((1,)), s], max_iterations=5
    ),
    "while without outputs": lambda F, x, s: F.contrib.while_loop(
        lambda u: u.sum() < x.max(), lambda u: (None, u + 0.3), s * 0, max_iterations=20
    ),
    "a free value in the condition": lambda F, x, s: F.contrib.while_loop(
        lambda u: u.sum() < F.exp(s).sum(), lambda u: ([u * first(F, x)], [u + F.exp(s) * 0.3]), [s * 0], max_iterations=20
    ),
    "a loop variable that is not read": lambda F, x, s: F.contrib.while_loop(
        lambda u, v: u.sum() < 3, lambda u, v: (u, [u + 0.5, u * 2]), [s * 0, first(F, x)], max_iterations=9
    ),
    "then": lambda F, x, s: F.contrib.cond((s * s).sum() > 0, lambda: [x * 2, [s]], lambda: [x, [first(F, x)]]),
    "else": lambda F, x, s: F.contrib.cond((s * s).sum() < 0, lambda: x * 2, lambda: F.broadcast_add(x, s)),
    "cond in cond": lambda F, x, s: F.contrib.cond(
        x.sum() > 100,
        lambda: x,
        lambda: F.contrib.cond(s.sum() > -100, lambda: F.broadcast_mul(x, s), lambda: F.broadcast_sub(x, s)),
    ),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(tmp_path, name):
    def run(F, self, x, s):
        return STRUCTURES[name](F, x, s)

    agree(
        tmp_path,
        lambda: Loop(run),
        numbers(3, 2, seed=1),
        numbers(2, seed=2),
        others=[(numbers(5, 2, seed=3), numbers(2, seed=4))],
    )


def test_operators_broadcast_in_a_loop_as_they_do_on_arrays(tmp_path):
    """Also in the loop of a loop; and the file has MXNet's operators of equal shapes where those serve."""

    def run(F, self, x, s):
        def inner(q, u):
            return q * u + s, u * 1

        def body(r, t):
            outputs, _ = F.contrib.foreach(inner, F.broadcast_like(r.reshape((1, -1)), x), t)
            return outputs.sum(axis=0) - r.sum(), t + r

        return F.contrib.foreach(body, x, s.sum(axis=0, keepdims=True) + F.zeros((2,)))

    def make():
        return Loop(run)

    net = make()
    net.hybridize()
    wanted = make()(nd.array(numbers(3, 2)), nd.array(numbers(2)))
    got = net(nd.array(numbers(3, 2)), nd.array(numbers(2)))
    close(got[0].asnumpy(), wanted[0].asnumpy())
    files = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1])
    close(loaded(nd.array(numbers(3, 2)), nd.array(numbers(2)))[0].asnumpy(), wanted[0].asnumpy())
    text = Path(files[0]).read_text()
    assert {"elemwise_mul", "broadcast_sub"} <= {node["op"] for node in nodes_of(json.loads(text))}


def nodes_of(graph):
    for node in graph["nodes"]:
        yield node
        for inner in node.get("subgraphs", ()):
            yield from nodes_of(inner)


# ---- training


def test_a_branch_that_is_not_taken_gives_no_gradient_and_no_nan():
    """Its weights get zeros, so that a Trainer goes on; and the weights of both can be trained in turn."""

    def function(F, self, x):
        def divide():
            return self.one(x).log() * 0 + self.one(x) / (x.sum() - 1)  # 1 / 0, and the logarithm of what may be negative

        return F.contrib.cond((x.sum() - 1) * (x.sum() - 1) > 0, divide, lambda: self.two(x))

    net = Loop(function, one=lambda: nn.Dense(2, in_units=2), two=lambda: nn.Dense(2, in_units=2))
    net.initialize(mx.init.One())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for row, taken in (([[2, 3]], "one"), ([[0.25, 0.75]], "two"), ([[3, 3]], "one"), ([[0.5, 0.5]], "two")):
        before = {name: param.data().asnumpy() for name, param in net.collect_params().items()}
        with autograd.record():
            loss = net(nd.array(row)).sum()
        loss.backward()
        trainer.step(1)  # would refuse gradients that backward has not written
        for name, param in net.collect_params().items():
            assert np.isfinite(param.grad().asnumpy()).all()
            assert np.isfinite(param.data().asnumpy()).all()
            assert (param.data().asnumpy() != before[name]).any() == (getattr(net, taken).prefix in name), name


def test_rows_that_no_step_wrote_give_no_nan():
    def function(F, self, x):
        rows, _ = F.contrib.while_loop(
            lambda i, h: i < 2, lambda i, h: (self.one(h), [i + 1, self.one(h)]), [F.zeros((1,)), x], max_iterations=6
        )
        return (rows * rows).sum()

    net = Loop(function, one=lambda: nn.Dense(2, flatten=False))
    net.initialize()
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    losses = []
    for _ in range(12):
        nd.full((1000,), np.nan).wait_to_read()  # memory that a careless loop would show
        with autograd.record():
            loss = net(nd.array([[1, 2]]))
        loss.backward()
        trainer.step(1)
        losses.append(loss.asscalar())
    assert losses[-1] < losses[0] * 0.5


def test_a_loop_without_a_step_gives_gradients_of_zero():
    w = nd.array([[3, 4]])
    w.attach_grad()
    w.grad[:] = 7
    i, x, weight = sym.var("i"), sym.var("x"), sym.var("w")
    rows, last = sym.contrib.while_loop(lambda i, x: i < 0, lambda i, x: (x * weight, [i + 1, x * weight]), [i, x], 3)
    cached = nd.CachedOp(sym.Group([rows, last[1]]))
    by_name = {"i": nd.zeros((1,)), "x": nd.array([[5, 5]]), "w": w}
    with autograd.record():
        outputs = cached(*[by_name[name] for name in sym.Group([rows, last[1]]).list_inputs()])
        total = outputs[0].sum() + outputs[1].sum()
    total.backward()
    assert outputs[0].shape == (3, 1, 2)
    assert not outputs[0].asnumpy().any()
    assert outputs[1].asnumpy().tolist() == [[5, 5]]
    assert not w.grad.asnumpy().any()


def test_higher_orders():
    x, w = sym.var("x"), sym.var("w")
    _, last = sym.contrib.foreach(lambda r, t: ([], t * w * r), x, sym.var("s"))
    cached = nd.CachedOp(last)
    values = {"x": nd.array([[1], [2], [3]]), "w": nd.array([2]), "s": nd.ones((1,))}
    values["w"].attach_grad()
    with autograd.record():
        y = cached(*[values[name] for name in last.list_inputs()])  # 6 w**3
        first = autograd.grad(y, values["w"], create_graph=True)
    first.backward()
    assert (y.asscalar(), first.asscalar(), values["w"].grad.asscalar()) == (48, 72, 72)


def test_modes_states_and_random_numbers_reach_the_loop():
    """BatchNorm's running means move once a step, in training only; Dropout draws anew in each step."""

    def function(F, self, x):
        outputs, _ = F.contrib.foreach(lambda r, t: (self.drop(self.norm(r)), t), x, [])
        return outputs

    net = Loop(function, norm=lambda: nn.BatchNorm(momentum=0.5), drop=lambda: nn.Dropout(0.5))
    net.initialize()
    x = nd.array(numbers(2, 50, 3) + 4)
    plain = net(x)  # of BatchNorm alone
    net.hybridize()
    close(net(x).asnumpy(), plain.asnumpy())
    means = net.norm.running_mean.data()
    assert not means.asnumpy().any()
    with autograd.record():
        y = net(x)
    y.backward()
    row_means = x.mean(axis=1).asnumpy()
    close(
        means.asnumpy(), 0.25 * row_means[1] + 0.5 * row_means[0]
    )  # BatchNorm moves them in backward, which goes from the last step
    zeros = y.asnumpy() == 0
    assert 0.3 < zeros.mean() < 0.7
    assert (zeros[0] != zeros[1]).any()
    graph = net(sym.var("data"))
    assert [name.rsplit("_", 2)[1:] for name in graph.list_auxiliary_states()] == [["running", "mean"], ["running", "var"]]


# ---- shapes and dtypes


def test_shapes_spread_through_a_loop_both_ways():
    x, h = sym.var("x"), sym.var("h")
    outputs, last = sym.contrib.foreach(lambda r, t: (t, sym.FullyConnected(r, num_hidden=3, name="fc") + t), x, h)
    graph = sym.Group([outputs, last])
    arguments, shapes, _ = graph.infer_shape(x=(7, 2, 4))
    assert dict(zip(graph.list_arguments(), arguments)) == {"x": (7, 2, 4), "fc_weight": (3, 4), "fc_bias": (3,), "h": (2, 3)}
    assert shapes == [(7, 2, 3), (2, 3)]
    arguments, shapes, _ = graph.infer_shape_partial(x=(0, 2, 4))  # the number of steps is not known
    assert shapes == [(0, 2, 3), (2, 3)]
    executor = graph.simple_bind(mx.cpu(), x=(5, 2, 4))
    assert executor.arg_dict["fc_weight"].shape == (3, 4)
    assert executor.reshape(x=(3, 2, 4)).forward()[0].shape == (3, 2, 3)
    with pytest.raises(MXNetError, match="_foreach"):
        graph.infer_shape(x=(7, 2, 4), h=(2, 5))


def test_a_length_follows_from_a_neighbour():
    x, y = sym.var("x"), sym.var("y")
    outputs, _ = sym.contrib.foreach(lambda r, t: (r[0] * r[1], t), [x, y], [])
    arguments, shapes, _ = outputs.infer_shape_partial(x=(4, 2))
    assert (arguments, shapes) == ([(4, 2), (4, 2)], [(4, 2)])
    with pytest.raises(ShapeError, match=r"lengths \[4, 5\]"):
        outputs.infer_shape(x=(4, 2), y=(5, 2))
    total = outputs + sym.var("z")  # and from what the loop gives
    assert total.infer_shape_partial(z=(6, 3))[0] == [(6, 3), (6, 3), (6, 3)]


def test_shapes_of_while_loop_and_cond():
    i, x, w = sym.var("i"), sym.var("x"), sym.var("w")
    rows, (_, last) = sym.contrib.while_loop(lambda i, x: i < 3, lambda i, x: (x * w, [i + 1, x + w]), [i, x], max_iterations=4)
    graph = sym.Group([rows, last])
    assert graph.list_arguments() == ["i", "x", "w"]
    assert graph.infer_shape(i=(1,), x=(2, 3)) == ([(1,), (2, 3), (2, 3)], [(4, 2, 3), (2, 3)], [])
    with pytest.raises(MXNetError, match="condition has shape"):
        graph.simple_bind(mx.cpu(), i=(2,), x=(2, 3))
    branch = sym.contrib.cond(i > 0, lambda: x * 2, lambda: w)
    assert branch.infer_shape(i=(1,), x=(2, 3)) == ([(1,), (2, 3), (2, 3)], [(2, 3)], [])
    with pytest.raises(MXNetError, match="cond"):
        branch.infer_shape(i=(1,), x=(2, 3), w=(4,))


def test_dtypes():
    x, h, w = sym.var("x"), sym.var("h"), sym.var("w")
    outputs, last = sym.contrib.foreach(lambda r, t: (r * w, t + r), x, h)
    graph = sym.Group([outputs, last])
    assert graph.infer_type(x=np.float16) == ([np.float16] * 3, [np.float16] * 2, [])
    executor = graph.simple_bind(mx.cpu(), type_dict={"x": "float64"}, x=(2, 3))
    assert executor.forward()[0].dtype == np.float64
    counted, _ = sym.contrib.foreach(lambda r, t: (sym.cast(r, "int32"), t), x, [])
    assert counted.infer_type(x=np.float32)[1] == [np.int32]
    rows, _ = sym.contrib.while_loop(lambda h: h.sum() < 3, lambda h: (h * w, h + 1), h, max_iterations=4)
    assert rows.infer_type(w=np.float64) == ([np.float64] * 2, [np.float64], [])
    branch = sym.contrib.cond(h > 0, lambda: x * 2, lambda: w)
    assert branch.infer_type(h=np.int32, w=np.float16) == ([np.int32, np.float16, np.float16], [np.float16], [])
    clash = sym.contrib.cond(h > 0, lambda: sym.cast(x, "int32"), lambda: sym.cast(x, "int8"))
    with pytest.raises(MXNetError, match="int8"):
        clash.simple_bind(mx.cpu(), h=(1,), x=(2,))


def test_no_steps_give_no_rows():
    x, h = sym.var("x"), sym.var("h")
    outputs, last = sym.contrib.foreach(lambda r, t: (r * 2, t + r), x, h)
    cached = nd.CachedOp(sym.Group([outputs, last]))
    found = cached(nd.array(np.zeros((0, 3))), nd.ones((3,)))
    assert [each.shape for each in found] == [(0, 3), (3,)]
    assert (found[1].asnumpy() == 1).all()


# ---- the graph


def test_graphs_can_be_copied_composed_and_asked(tmp_path):
    import copy
    import pickle

    x, h = sym.var("x"), sym.var("h")
    outputs, last = sym.contrib.foreach(lambda r, t: (r * t, t + r), x, h, name="sums")
    graph = sym.Group([outputs, last])
    values = {"x": nd.array([[1, 2], [3, 4]]), "h": nd.zeros((2,))}
    wanted = [each.asnumpy().tolist() for each in graph.eval(**values)]
    graph.save(str(tmp_path / "graph.json"))
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)), sym.load(str(tmp_path / "graph.json"))):
        assert [each.asnumpy().tolist() for each in other.eval(**values)] == wanted
        assert other.tojson() == graph.tojson()
    composed = graph(h=sym.var("start") * 2)
    assert composed.list_arguments() == ["x", "start"]
    assert [each.asnumpy().tolist() for each in composed.eval(x=values["x"], start=values["h"])] == wanted
    node = outputs.entries[0][0]
    node.set_attrs({"num_out_data": "1"})
    assert len(node.op.subgraphs) == 1  # a change of attributes does not lose the loop
    assert outputs.attr("num_out_data") == "1"
    assert "_foreach" in graph.debug_str()


def test_nodes_of_the_body_are_marked(monkeypatch):
    monkeypatch.setattr(AttrScope, "_subgraph_names", collections.defaultdict(int))
    seen = []

    def body(r, t):
        seen.append((r.name, r.attr("__subgraph_name__")))
        return sym.contrib.foreach(lambda q, u: (seen.append((q.name, q.attr("__subgraph_name__"))) or q, u * q), r, t)

    sym.contrib.foreach(body, sym.var("x"), sym.var("h"), name="mine")
    assert seen == [("x-0", "mine0"), ("x-0-0", "mine0$foreach0")]
    assert AttrScope.current.get(None) == {}


def test_an_error_in_the_body_leaves_the_scope():
    with pytest.raises(ZeroDivisionError):
        sym.contrib.foreach(lambda r, t: 1 / 0, sym.var("x"), sym.var("h"))
    assert AttrScope.current.get(None) == {}


def test_monitors_see_the_loop():
    x, h = sym.var("x"), sym.var("h")
    outputs, _ = sym.contrib.foreach(lambda r, t: (r * t, t + r), x, h)
    executor = outputs.simple_bind(mx.cpu(), x=(2, 3))
    names = []
    executor.set_monitor_callback(lambda name, array: names.append(name))
    executor.forward()
    assert [name[-8:] for name in names] == ["_output0", "_output1"]


def test_program_of_a_loop_says_why_there_is_none():
    net = Loop(lambda F, self, x: F.contrib.foreach(lambda r, t: (r, t), x, [])[0])
    net.hybridize()
    assert net(nd.ones((2, 3))).shape == (2, 3)


# ---- what is refused

x, h, w = sym.var("x"), sym.var("h"), sym.var("w")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: sym.contrib.foreach(lambda r, t: (r, t), 1, h), AssertionError, "data must be a Symbol or"),
        (lambda: sym.contrib.foreach(lambda r, t: (r, t), nd.ones((2,)), h), AssertionError, "data must be a Symbol or"),
        (lambda: sym.contrib.foreach(lambda r, t: (r, t), [], h), AssertionError, "data is empty"),
        (lambda: sym.contrib.foreach(lambda r, t: (r, t), x, 1), AssertionError, "init_states must be"),
        (lambda: sym.contrib.foreach(lambda r, t: (1, t), x, h), AssertionError, "the outputs of body must be"),
        (lambda: sym.contrib.foreach(lambda r, t: (r, [t]), x, h), AssertionError, "another structure than it got"),
        (lambda: sym.contrib.foreach(lambda r, t: (r, r), x, h), AssertionError, "state arrays have to be used .* h-0 is not"),
        (lambda: sym.contrib.foreach(lambda r, t: ([], []), x, []), AssertionError, "neither outputs nor states"),
        (lambda: sym.contrib.foreach(lambda r, t: r, x, h), ArgumentError, "body must return a pair"),
        (lambda: sym.contrib.foreach(lambda r: (r, r), x, h), ArgumentError, "body cannot be called with 2 arguments"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, i), h), ValueError, "max_iterations should be specified"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, i), h, 0), ValueError, "wants 1 or more"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, i), h, "x"), ValueError, "whole number"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, i), [], 3), ValueError, "at least one element"),
        (lambda: sym.contrib.while_loop(lambda i: 1, lambda i: (i, i), h, 3), ValueError, "cond must return a Symbol of one output, got 1"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, [i, i]), h, 3), ValueError, "returns 2 loop_vars, it got 1"),
        (lambda: sym.contrib.while_loop(lambda i: i < 5, lambda i: (i, 5), h, 3), AssertionError, "loop_vars of func must be"),
        (lambda: sym.contrib.cond(1, lambda: x, lambda: w), AssertionError, "pred must be a Symbol"),
        (lambda: sym.contrib.cond([x, w], lambda: x, lambda: w), ValueError, "single output, it has 2"),
        (lambda: sym.contrib.cond(h, lambda: x, lambda: [w, w]), ValueError, "gives 1 outputs and else_func 2"),
        (lambda: sym.contrib.cond(h, lambda: 1, lambda: w), AssertionError, "what then_func returns must be"),
        (lambda: sym.contrib.cond(h, list, list), AssertionError, "then_func returns nothing"),
        (lambda: sym.contrib.cond(h, 5, lambda: w), ArgumentError, "then_func must be a function"),
    ],
)  # fmt: skip
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert isinstance(caught.value, MXNetError)


def test_data_of_different_lengths():
    outputs, _ = sym.contrib.foreach(lambda r, t: (r[0] * r[1], t), [x, w], [])
    with pytest.raises(ShapeError, match="equally long"):
        nd.CachedOp(outputs)(nd.ones((2, 3)), nd.ones((4, 3)))
    with pytest.raises(ShapeError, match=r"lengths|equally long"):
        outputs.bind(mx.cpu(), {"x": nd.ones((2, 3)), "w": nd.ones((4, 3))})


def test_a_state_that_grows():
    _, last = sym.contrib.foreach(lambda r, t: (r, sym.concat(t, r, dim=0)), x, h)
    with pytest.raises(ShapeError, match=r"state 0 is float32\[2\] before a step and float32\[4\] after it"):
        last.bind(mx.cpu(), {"x": nd.ones((3, 2)), "h": nd.ones((2,))})


def changed(name, **changes):
    """The JSON of a golden graph with changes to its node of control flow."""
    graph = json.loads(GOLDEN[name]["symbol"])
    node = next(node for node in graph["nodes"] if "subgraphs" in node)
    for key, value in changes.items():
        if key in node["attrs"]:
            node["attrs"][key] = value
        elif value is None:
            del node[key]
        else:
            node[key] = value(node[key])
    return json.dumps(graph)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("foreach", {"subgraphs": None}),
        ("foreach", {"subgraphs": lambda graphs: graphs * 2}),
        ("foreach", {"subgraphs": lambda graphs: [{}]}),
        ("foreach", {"subgraphs": lambda graphs: 5}),
        ("foreach", {"inputs": lambda inputs: inputs[:-1]}),
        ("foreach", {"in_data_locs": "[7]"}),
        ("foreach", {"in_data_locs": "[]"}),
        ("foreach", {"remain_locs": "[0]"}),
        ("foreach", {"num_outputs": "3"}),
        ("foreach", {"num_out_data": "2"}),
        ("foreach", {"num_args": "x"}),
        ("while", {"func_var_locs": "[9, 1]"}),
        ("while", {"cond_input_locs": "[-1]"}),
        ("while", {"max_iterations": "0"}),
        ("while", {"subgraphs": lambda graphs: graphs[::-1]}),
        ("cond_then", {"then_input_locs": "[1]"}),
        ("cond_then", {"num_outputs": "0"}),
    ],
)
def test_broken_files(name, changes):
    with pytest.raises(MXNetError) as caught:
        sym.load_json(changed(name, **changes))
    assert isinstance(caught.value, (FileFormatError, ArgumentError))


def test_a_file_that_is_nested_too_deep():
    with pytest.raises(FileFormatError):
        sym.load_json('{"nodes": ' + "[" * 200_000)
