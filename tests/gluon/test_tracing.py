"""What a trace was made for: autograd's flags, blocks with a forward of their own, shapes that broadcast; and hybridize's arguments."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, nd, sym
from minimx.base import MXNetError, NotImplementedForSymbol
from minimx.gluon import nn

ONE = nd.ones((1,))


class Counted(gluon.HybridBlock):
    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        self.runs = 0

    def hybrid_forward(self, F, *args):
        self.runs += 1
        return self.function(F, *args)


# ---- flags


def test_a_trace_for_each_answer():
    net = Counted(lambda F, x: x * (2 if autograd.is_training() else 3) * (5 if autograd.is_recording() else 7))
    net.hybridize()
    for _ in range(2):
        for recording in (False, True):
            for training in (False, True):
                with autograd.record(training) if recording else autograd.pause(training):
                    assert net(ONE).asscalar() == (2 if training else 3) * (5 if recording else 7)
    assert net.runs == 4


def test_who_does_not_ask_is_traced_once():
    net = nn.HybridSequential()
    net.add(Counted(lambda F, x: x * 2), nn.Dropout(0.5))
    net.hybridize()
    net(ONE)
    with autograd.record():
        net(ONE)
    assert net[0].runs == 1


def test_only_what_was_asked_counts():
    net = Counted(lambda F, x: x * 2 if autograd.is_training() else x)
    net.hybridize()
    with autograd.pause(train_mode=True):
        net(ONE)
    with autograd.record(train_mode=True):
        net(ONE)
    assert net.runs == 1


def test_questions_of_inner_blocks_belong_to_the_outer_trace():
    net = nn.HybridSequential()
    net.add(nn.HybridSequential())
    net[0].add(Counted(lambda F, x: x * 2 if autograd.is_training() else x * 3))
    net.hybridize()
    for _ in range(2):
        assert net(ONE).asscalar() == 3
        with autograd.train_mode():
            assert net(ONE).asscalar() == 2


def test_a_flag_that_the_code_sets_itself():
    def function(F, x):
        with autograd.predict_mode():
            return x * 2 if autograd.is_training() else x * 3

    net = Counted(function)
    net.hybridize()
    for _ in range(3):
        for training in (True, False):
            with autograd.record(training):
                assert net(ONE).asscalar() == 3
    assert net.runs == 2


def test_flags_are_those_of_the_calling_thread():
    net = Counted(lambda F, x: x * 2 if autograd.is_training() else x * 3)
    net.hybridize()
    found = []
    with autograd.train_mode():
        assert net(ONE).asscalar() == 2
        thread = threading.Thread(target=lambda: found.append(net(ONE).asscalar()))
        thread.start()
        thread.join(20)
    assert found == [3]


def test_parameters_that_only_training_uses():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.body, self.extra = nn.Dense(2), nn.Dense(3)

        def hybrid_forward(self, F, x):
            return (self.body(x), self.extra(x)) if autograd.is_training() else self.body(x)

    net = Net()
    net.initialize()
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert net(nd.ones((2, 4))).shape == (2, 2)
        assert net.extra.weight._deferred_init
        with autograd.train_mode():
            body, extra = net(nd.ones((2, 4)))
    assert (body.shape, extra.shape) == ((2, 2), (2, 3))
    net.hybridize(False)
    assert net(nd.ones((2, 4))).shape == (2, 2)


def test_an_error_while_tracing_leaves_nothing_behind():
    net = Counted(lambda F, x: x.asnumpy() if autograd.is_training() else x)
    net.hybridize()
    with pytest.raises(MXNetError), autograd.train_mode():
        net(ONE)
    assert autograd.state.asked is None
    assert not net._traces
    assert net(ONE).asscalar() == 1


# ---- a forward of its own


class Own(gluon.HybridBlock):
    """A block that overrides forward: `function(self, *args)`."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        self.runs = 0
        with self.name_scope():
            self.dense = nn.Dense(2, use_bias=False, weight_initializer="ones", flatten=False)
        self.initialize()

    def forward(self, *args):
        self.runs += 1
        return self.function(self, *args)


def test_a_forward_of_its_own_becomes_a_graph():
    net = Own(lambda self, x: nd.relu(self.dense(x)) + x.sum(axis=-1, keepdims=True) * (2 if autograd.is_training() else 1))
    wanted = net(nd.ones((2, 3))).asnumpy()
    net.hybridize(static_alloc=True)
    net.runs = 0
    for batch in (2, 2, 5):
        np.testing.assert_array_equal(net(nd.ones((batch, 3))).asnumpy()[:2], wanted)
    assert net.runs == 1
    with autograd.record():
        y = net(nd.ones((2, 3)))
    y.backward()
    assert (y.asnumpy() == 9).all()
    assert (net.dense.weight.grad().asnumpy() == 2).all()
    assert net.runs == 2
    graph = net(sym.var("x"))
    assert graph.list_arguments() == ["x", net.dense.weight.name]
    assert net.forward(nd.ones((2, 3))).shape == (2, 2)  # called by its name it is Python code


@pytest.mark.parametrize("outer", [True, False])
def test_inside_a_sequence(outer, tmp_path):
    net = nn.HybridSequential()
    net.add(Own(lambda self, x: self.dense(x) * 2), nn.Dense(1, use_bias=False, weight_initializer="ones"))
    net.initialize(init.One(), force_reinit=True)
    wanted = net(nd.ones((2, 3))).asnumpy()
    (net if outer else net[0]).hybridize()
    net[0].runs = 0
    for _ in range(2):
        np.testing.assert_array_equal(net(nd.ones((2, 3))).asnumpy(), wanted)
    assert net[0].runs == 1
    (net if outer else net[0]).export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(tmp_path / "net-symbol.json", "data", tmp_path / "net-0000.params")
    np.testing.assert_array_equal(block(nd.ones((2, 3))).asnumpy(), (net if outer else net[0])(nd.ones((2, 3))).asnumpy())


def test_a_forward_that_calls_the_one_it_overrides():
    class Net(Counted):
        def forward(self, x):
            return super().forward(x, x * 2) + 1

    net = Net(lambda F, x, y: F.elemwise_add(x, y))
    for hybrid in (False, True):
        net.hybridize(hybrid)
        for _ in range(2):
            assert net(ONE).asscalar() == 4
    assert net.runs == 3


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda self, x: self.dense(x) * x.shape[0], "a Symbol has no shape.*reshape"),
        (lambda self, x: self.dense(x) * float(x.asnumpy().size), "asnumpy is not supported for Symbol"),
        (lambda self, x: self.dense(x) * (2 if x.sum() > 100 else 6), "bool"),
        (lambda self, x: self.dense(x) + nd.ones((1,)) * 15, "they cannot be mixed"),
    ],
)
def test_a_forward_that_cannot_become_a_graph_stays_python_code(function, reason):
    net = Own(function)
    x = nd.ones((6, 3))[:, :1]
    wanted = net(x).asnumpy()
    net.hybridize()
    with pytest.warns(UserWarning, match=f"cannot become a graph .*{reason}"):
        y = net(x)
    np.testing.assert_array_equal(y.asnumpy(), wanted)
    np.testing.assert_array_equal(net(x).asnumpy(), wanted)
    assert net.dense._traces  # the layer in it is one
    with pytest.raises(RuntimeError, match="no graph to export"):
        net.export("nowhere")


def test_real_errors_are_raised_all_the_same():
    net = Own(lambda self, x: self.dense(x) + undefined)  # noqa: F821
    net.hybridize()
    with pytest.warns(UserWarning, match="undefined"), pytest.raises(NameError, match="undefined"):
        net(nd.ones((2, 3)))
    net = Own(lambda self, x: self.dense(x))
    net.hybridize()
    net(nd.ones((2, 3)))
    with pytest.raises(MXNetError, match="weight has shape"):
        net(nd.ones((2, 4)))
    with pytest.raises(ValueError, match="several contexts"):
        net(nd.ones((2, 3), ctx=mx.cpu(1)), nd.ones((2, 3), ctx=mx.cpu(2)))


def test_other_arguments_are_traced_anew():
    net = Own(lambda self, x, y=None: self.dense(x if y is None else x + y))
    net.hybridize()
    x = nd.ones((2, 3))
    for _ in range(2):
        assert (net(x).asnumpy() == 3).all()
        assert (net(x, x).asnumpy() == 6).all()
    assert net.runs == 2
    with pytest.warns(UserWarning, match="must be an NDArray"):
        assert (net(x, 4).asnumpy() == 15).all()


# ---- shapes that broadcast


def test_python_operators_broadcast_for_whatever_shapes_come():
    net = Counted(lambda F, a, b: a + b)
    net.hybridize()
    for one, other in (((2, 3), (2, 3)), ((2, 3), (1, 3)), ((1, 3), (4, 1)), ((2, 3), (2, 3))):
        np.testing.assert_array_equal(net(nd.ones(one), nd.ones(other)).asnumpy(), np.ones(one) + np.ones(other))
    assert net.runs == 1
    with pytest.raises(MXNetError, match="broadcast"):
        net(nd.ones((2, 3)), nd.ones((2, 4)))


def test_functions_that_want_equal_shapes_still_do():
    net = Counted(lambda F, a, b: F.elemwise_add(a, b))
    for hybrid in (False, True):
        net.hybridize(hybrid)
        with pytest.raises(MXNetError, match="must be equal"):
            net(nd.ones((2, 3)), nd.ones((1, 3)))
    with pytest.raises(MXNetError):
        (sym.var("a") + sym.var("b")).bind(mx.cpu(), {"a": nd.ones((2, 3)), "b": nd.ones((1, 3))})


def test_shapes_are_learned_through_operators():
    class Net(gluon.HybridBlock):
        def __init__(self, shape, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = nn.Dense(3, flatten=False)
                self.shift = self.params.get("shift", shape=shape, init="ones", allow_deferred_init=True)

        def hybrid_forward(self, F, x, shift):
            return self.dense(x + shift) + F.mean(x, axis=1, keepdims=True)

    for shape in ((0, 0), (1, 4), (4,)):
        results = []
        for hybrid in (False, True):
            net = Net(shape)
            net.initialize(init.One())
            net.hybridize(hybrid)
            results.append(net(nd.ones((2, 4))).asnumpy())
            assert net.shift.shape == ((2, 4) if shape == (0, 0) else shape)
            assert net.dense.weight.shape == (3, 4)
        np.testing.assert_array_equal(*results)


def test_broadcasting_with_arrays_of_open_shapes():
    net = Counted(lambda F, x, y: (x + F.zeros((0, 2)) if F is sym else x) * y)
    net.hybridize()
    assert net(nd.ones((3, 2)), nd.ones((3, 1))).shape == (3, 2)


# ---- arguments of hybridize


def test_arguments_of_hybridize():
    net = Counted(lambda F, x: x * 2)
    net.hybridize(True, None, True, True, True, 2, 5, 5)
    assert net(ONE).asscalar() == 2
    net.hybridize(True, clear=False)
    net(ONE)
    assert net.runs == 1
    with pytest.raises(ValueError, match="there is no backend 'NGRAPH'; there are"):
        net.hybridize(backend="NGRAPH")
    with pytest.raises(ValueError, match="without a backend"):
        net.hybridize(backend_opts={"level": 1})
    with pytest.raises(TypeError):
        net.hybridize(statik=True)
    net.hybridize(False, backend=None, backend_opts=None)
    net(ONE)
    net(ONE)
    assert net.runs == 3


# ---- what code does that a graph cannot


@pytest.mark.parametrize(
    "code", [lambda F, x: x[0], lambda F, x: x / len(x), lambda F, x: F.concat(*x, dim=0), lambda F, x: x[0:1]]
)
def test_outputs_that_look_like_elements_are_warned_of(code):
    net = Counted(code)
    net(nd.ones((3, 2)))
    net.hybridize()
    with pytest.warns(UserWarning, match=r"mean the outputs of <Symbol data> .* Use F.slice_axis, F.split") as caught:
        net(nd.ones((3, 2)))
    assert {each.filename for each in caught} == {__file__}


def test_outputs_that_are_meant_are_not_warned_of():
    net = Counted(lambda F, x: F.split(x, num_outputs=2)[0] + F.split(x, num_outputs=1)[0].sum() * sum(len(y) for y in [[x]]))
    net.hybridize()
    assert net(nd.ones((3, 2))).shape == (3, 1)
    sym.var("x")[0]  # nothing is traced


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (None, "hybrid_forward must return a Symbol.*it returned None"), ([], r"it returned \[\]"),
        (nd.ones(1), "it returned an NDArray. Make it with F"), ({"a": 1}, "the output must be .*, got a dict"), (3, "got 3"),
    ],
)  # fmt: skip
def test_results_that_are_no_graph(result, match):
    net = Counted(lambda F, x: result)
    net.hybridize()
    with pytest.raises(MXNetError, match=match):
        net(ONE)


class Clashing(gluon.HybridBlock):
    def __init__(self):
        super().__init__(prefix="")
        self.data = self.params.get("data", shape=(3,), init=init.One())

    def hybrid_forward(self, F, x, data):
        return x * data + data


def test_a_parameter_that_is_called_like_an_input(tmp_path):
    net = Clashing()
    net.initialize()
    x = nd.array([1, 2, 3])
    net.hybridize()
    assert net(x).asnumpy().tolist() == [2, 3, 4]
    files = net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(files[0], "data_", files[1])
    assert again(x).asnumpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    "how", [{"active": "no"}, {"inline_limit": "a"}, {"inline_limit": 1.5}, {"static_alloc": 2}, {"clear": None}], ids=str
)
def test_odd_arguments_of_hybridize(how):
    [name] = how
    with pytest.raises(MXNetError, match=f"hybridize: {name} must be "):
        nn.Dense(3, prefix="d_").hybridize(**how)


@pytest.mark.parametrize(("path", "epoch"), [("net", -1), ("net", 1.5), ("net", None), (None, 0), ("", 0)])
def test_odd_names_of_exported_files(path, epoch):
    net = Counted(lambda F, x: x * 2)
    net.hybridize()
    net(ONE)
    with pytest.raises(MXNetError, match=r"epoch|file's name"):
        net.export(path, epoch)


def test_a_gradient_does_not_take_the_place_of_memory_that_a_small_program_knows():
    net = nn.Dense(3, in_units=3, use_bias=False)
    net.initialize(init.One())
    net.hybridize()
    x, y = nd.array([[1, 2, 3]]), nd.ones((3, 3))
    autograd.mark_variables([y], [net.weight.data()])
    square = Counted(lambda F, x: x * x)
    square.hybridize()
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [[6, 6, 6]]
    with autograd.record():
        loss = square(y)
    loss.backward()
    assert net.weight.data().asnumpy().tolist() == [[2, 2, 2]] * 3
    assert net(x).asnumpy().tolist() == [[12, 12, 12]]


class Misnamed(gluon.HybridBlock):
    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.w = self.params.get("weight", shape=(2,), init="ones")
        self.hybrid_forward = function


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("function", "inputs", "match"),
    [
        (lambda F, x, weight: x * weight, 1, r"m: the parameter 'm_weight', .*attribute 'w', has no argument .*takes \(F, x, weight\)"),
        (lambda F, x: x, 1, "the parameter 'm_weight', .*must be called like the attributes"),
        (lambda F, x, w, b: x, 1, r"does not fit 1 inputs and the parameters \['w'\]: missing a required argument: 'b'"),
        (lambda F, x, w: x, 2, r"does not fit 2 inputs and the parameters \['w'\]: multiple values for argument 'w'"),
        (lambda x, w: x, 1,
         r"m: Misnamed.hybrid_forward takes \(x, w\); its first argument must be F, .*hybrid_forward\(self, F, x, \.\.\.\)$"),
        (lambda x, y, w: x, 2, r"takes \(x, y, w\); its first argument must be F, which is mx.nd or mx.sym"),
        (lambda F, x, w: x * w + len(3), 1, r"object of type 'int' has no len\(\)"),
        (lambda F, x, **params: F.relu(x, nonsense=params), 1, "unknown argument nonsense"),
    ],
)  # fmt: skip
def test_parameters_that_hybrid_forward_has_no_argument_for(function, inputs, match, hybrid):
    net = Misnamed(function, prefix="m_")
    net.initialize()
    net.hybridize(hybrid)
    with pytest.raises(TypeError, match=match):
        net(*[nd.ones((2,))] * inputs)
    with pytest.raises(TypeError, match=match):
        net(*[mx.sym.var("x")] * inputs)


@pytest.mark.parametrize("hybrid", [False, True])
def test_arguments_without_a_tensor(hybrid):
    net = nn.Dense(2)
    net.hybridize(hybrid)
    with pytest.raises(ValueError, match=r"one NDArray or one Symbol .*, got a NumPy array; make an NDArray with nd\.array\(x\)"):
        net(np.ones((2, 3)))


@pytest.mark.parametrize(
    "code", [lambda x: x.asnumpy(), lambda x: x.asscalar(), lambda x: x.wait_to_read(), lambda x: x.copyto(x)]
)
def test_what_needs_a_value_names_what_to_do(code):
    net = Misnamed(lambda F, x, w: code(x))
    net.initialize()
    net.hybridize()
    with pytest.raises(
        NotImplementedForSymbol, match=r"not supported for Symbol, .*stay with the functions of F, or do it outside the block"
    ):
        net(nd.ones((2,)))
