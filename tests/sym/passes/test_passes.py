"""Each pass by itself: what it makes of a small graph, and that the values stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd, sym
from minimx.base import ArgumentError, MXNetError
from minimx.engine.execute import GROUPED
from minimx.op import Spec
from minimx.sym import Symbol, passes
from minimx.sym.graph import topological_order
from minimx.sym.passes.batchnorm import fold_batchnorm
from minimx.sym.passes.deadcode import drop_dead_code
from minimx.sym.passes.folding import fold_constants
from minimx.sym.passes.fusion import fuse
from minimx.sym.passes.gradient import differentiate, split
from minimx.sym.passes.memory import Buffer, Where, arrange, plan_memory
from minimx.sym.passes.specialize import specialize
from minimx.sym.passes.subexpressions import share_subexpressions
from minimx.sym.passes.typed import TypedGraph

x, y = sym.var("x"), sym.var("y")


def typed(graph: Symbol, training: bool = False, **shapes: tuple[int, ...]) -> TypedGraph:
    """The graph for float32 inputs of these shapes."""
    order = topological_order(graph.entries)
    variables = [node for node in order if node.op is None]
    given = [Spec.of(shapes[node.name], "float32") for node in variables]
    return specialize("graph", order, variables, graph.entries, given, training)


def operators(graph: TypedGraph) -> list[str]:
    return [node.op.name for node in graph.order if node.op is not None]


# ---- specialize


def test_operators_learn_the_mode_and_open_lengths() -> None:
    graph = typed(sym.Dropout(x + sym.zeros((0, 3))), training=True, x=(4, 3))
    assert [graph.specs[node, 0] for node in graph.order] == [Spec.of((4, 3), "float32")] * 3
    assert graph.order[-1].op.training  # type: ignore[union-attr]
    assert list(graph.draws.values()) == [0]


def test_a_misfit_names_its_node() -> None:
    with pytest.raises(MXNetError, match=r"Error in operator sum_of_two: elemwise_add: .*must be equal"):
        typed(sym.elemwise_add(x, y, name="sum_of_two"), x=(2, 3), y=(3, 3))


# ---- folding


def test_what_depends_on_no_input_is_computed_beforehand() -> None:
    graph = fold_constants(typed(x * (sym.ones((2, 3)) * 4 - 1), x=(2, 3)))
    graph = drop_dead_code(graph)
    assert operators(graph) == ["constant", "elemwise_mul"]
    assert (graph.order[0].op.value == 3).all()  # type: ignore[union-attr]
    assert graph.note == "2 dropped"


def test_large_constants_are_made_again_in_each_run() -> None:
    assert operators(fold_constants(typed(x + sym.ones((1000, 1000)), x=(1000, 1000)))) == ["_ones", "elemwise_add"]


def test_operators_without_effect_are_left_out() -> None:
    same = sym.identity(sym.Dropout(x * 1)).reshape((2, 3)).astype("float32") / 1
    graph = fold_constants(typed(same, x=(2, 3)))
    assert operators(graph) == []
    assert graph.heads == ((graph.variables[0], 0),)


def test_what_looks_only_at_shapes_does_not_depend() -> None:
    graph = drop_dead_code(fold_constants(typed(sym.reshape_like(x, sym.exp(y)) + sym.zeros_like(sym.exp(y)), x=(6,), y=(2, 3))))
    assert sorted(operators(graph)) == ["Reshape", "constant", "elemwise_add"]


def test_minus_zero_survives() -> None:
    """x + 0 is not x: -0.0 + 0 is 0.0."""
    assert operators(fold_constants(typed(x + 0, x=(2,)))) == ["_plus_scalar"]


# ---- subexpressions


def test_what_is_computed_twice_is_computed_once() -> None:
    graph = share_subexpressions(typed(sym.exp(x + y) * sym.exp(x + y), x=(2,), y=(2,)))
    assert operators(graph) == ["elemwise_add", "exp", "elemwise_mul"]
    assert graph.note == "2 computed already"


def test_attributes_tell_operators_apart() -> None:
    """tril(x, 1) and tril(x, -1) differ in an attribute only."""
    pair = sym.op.sum(x, axis=1) + sym.op.sum(x, axis=0)
    assert operators(share_subexpressions(typed(pair, x=(3, 3)))) == ["sum", "sum", "elemwise_add"]


def test_zeros_of_either_sign_tell_operators_apart() -> None:
    assert operators(share_subexpressions(typed(sym.Group([x * 0.0, x * -0.0, x * 0.0]), x=(3,)))) == ["_mul_scalar"] * 2


def test_two_draws_are_two_draws() -> None:
    graph = typed(sym.Dropout(x, p=0.5) + sym.Dropout(x, p=0.5), training=True, x=(8,))
    assert operators(share_subexpressions(graph)) == ["Dropout", "Dropout", "elemwise_add"]


# ---- gradients


def test_the_gradient_is_a_graph() -> None:
    graph = typed(sym.exp(x) * y, x=(3,), y=(3,))
    whole, seeds, reached = differentiate(graph, [graph.variables[0]])
    assert (reached, len(seeds)) == ([0], 1)
    assert operators(whole) == ["exp", "elemwise_mul", "broadcast_mul", "broadcast_mul"]
    forward, backward, handed = split(share_subexpressions(whole), 1, seeds)
    assert operators(forward) == ["exp", "elemwise_mul"]
    assert operators(backward) == ["broadcast_mul"] * 2
    assert [node.name for node in forward.variables] == ["x", "y"]
    assert len(handed) == 3  # y, exp(x), and the gradient that comes


def test_what_has_no_gradient_says_so_with_its_node() -> None:
    graph = typed(sym.op.signsgd_update(x, y, lr=1.0, name="update"), x=(2, 3), y=(2, 3))
    with pytest.raises(MXNetError, match="gradient of update: signsgd_update has no gradient"):
        differentiate(graph, [graph.variables[0]])


def test_views_are_made_again_rather_than_handed_over() -> None:
    graph = typed(sym.FullyConnected(x.reshape((4, -1)), y, no_bias=True, num_hidden=2), x=(4, 2, 3), y=(2, 6))
    whole, seeds, _ = differentiate(graph, [graph.variables[1]])
    forward, _, handed = split(whole, 1, seeds)
    assert len(forward.heads) == 1  # no value of the forward part is needed
    assert [entry[0].op for entry in handed] == [None, None]


# ---- BatchNorm


def test_batch_norm_goes_into_the_weights() -> None:
    net = sym.BatchNorm(sym.Convolution(x, num_filter=4, kernel=(3, 3), name="conv"), fix_gamma=False, name="bn")
    arguments, _, states = net.infer_shape(x=(2, 3, 16, 16))
    shapes = dict(zip([*net.list_arguments(), *net.list_auxiliary_states()], [*arguments, *states]))
    graph = drop_dead_code(fold_batchnorm(typed(net, **shapes)))
    assert "BatchNorm" not in operators(graph)
    assert operators(graph)[-1] == "Convolution"
    assert "BatchNorm" in operators(fold_batchnorm(typed(net, training=True, **shapes)))
    small = {**shapes, "x": (1, 3, 3, 3)}
    assert "BatchNorm" in operators(fold_batchnorm(typed(net, **small)))  # one pass over the weights would cost more


@pytest.mark.parametrize("fix_gamma", [True, False])
@pytest.mark.parametrize("layer", ["conv", "dense"])
def test_folded_batch_norm_gives_the_same(layer: str, fix_gamma: bool) -> None:
    if layer == "conv":
        before = sym.Convolution(x, num_filter=4, kernel=(3, 3), no_bias=fix_gamma, name="layer")
        shape: tuple[int, ...] = (5, 3, 8, 8)
    else:
        before = sym.FullyConnected(x, num_hidden=4, name="layer")
        shape = (64, 5)
    net = sym.BatchNorm(before, fix_gamma=fix_gamma, eps=1e-3, axis=1, name="bn")
    rng = np.random.default_rng(0)
    found = net.simple_bind(mx.cpu(), x=shape, grad_req="null")
    for array in (*found.arg_arrays, *found.aux_arrays):
        array[:] = rng.random(array.shape) + 0.1
    got = found.forward()[0].asnumpy()
    assert "batchnorm(" not in found.program.source
    assert "1 folded" in found.program.report()
    with passes.without("batchnorm"):
        want = found.forward()[0].asnumpy()
        assert "batchnorm(" in found.program.source
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def test_only_batch_norm_itself_is_folded() -> None:
    """With a rectifier inside it is another operator."""
    net = sym.contrib.BatchNormWithReLU(sym.FullyConnected(x, num_hidden=4, name="layer"), fix_gamma=False, name="bn")
    arguments, _, states = net.infer_shape(x=(64, 5))
    shapes = dict(zip([*net.list_arguments(), *net.list_auxiliary_states()], [*arguments, *states]))
    assert operators(fold_batchnorm(typed(net, **shapes)))[-1] == "_contrib_BatchNormWithReLU"


# ---- fusion

LARGE = (2, GROUPED)


def test_neighbours_become_a_group() -> None:
    graph = fuse(typed(sym.exp(sym.tanh(x * 2 + 1) * y), x=LARGE, y=LARGE))
    assert [len(group) for group in graph.groups] == [5]
    assert not fuse(typed(sym.exp(sym.tanh(x * 2 + 1)), x=(2, 3))).groups  # small arrays stay in cache anyway


def test_an_independent_operator_runs_before_the_group() -> None:
    z = sym.var("z")
    first = sym.exp(x)
    product = sym.dot(z, z)
    graph = fuse(typed(sym.Group([sym.tanh(first), product]), x=LARGE, z=(4, 4)))
    assert [len(group) for group in graph.groups] == [2]
    total = sym.sum(first)
    graph = fuse(typed(sym.Group([sym.broadcast_add(sym.tanh(first), total)]), x=LARGE))
    assert operators(graph) == ["exp", "tanh", "sum", "broadcast_add"]


@pytest.mark.parametrize("threads", [1, 2])
def test_groups_give_the_same(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.engine.crew, "SIZE", threads)
    net = sym.Group([sym.exp(sym.tanh(x * 2 + 1) * y - 0.5), sym.relu(x) + y, (x - y).reshape((-1,))])
    arrays = {"x": nd.random.normal(shape=(3, 300_001)), "y": nd.random.normal(shape=(3, 300_001))}
    fused = [array.asnumpy() for array in net.eval(**arrays)]
    with passes.without("fusion"):
        plain = [array.asnumpy() for array in net.eval(**arrays)]
    np.testing.assert_allclose(fused[0], plain[0], 2e-6)  # functions of loops round otherwise than NumPy's
    for one, other in zip(fused[1:], plain[1:]):
        np.testing.assert_array_equal(one, other)


# ---- the memory plan


def planned(graph: Symbol, **shapes: tuple[int, ...]) -> Any:
    return plan_memory(typed(graph, **shapes)).plan


def test_a_chain_is_computed_in_the_memory_of_its_output() -> None:
    plan = planned(sym.exp(sym.tanh(x + 1)), x=(4,))
    assert (len(plan.written_over), plan.arena) == (2, 0)
    assert {buffer.where for buffer in plan.buffers.values()} == {Where.GIVEN, Where.OUTPUT}


def test_an_operand_that_is_needed_later_is_not_written_over() -> None:
    middle = sym.tanh(x)
    plan = planned(sym.exp(middle) * middle, x=(4,))
    assert len(plan.written_over) == 1  # the product, over one of its operands


@pytest.mark.parametrize("first", [x, sym.exp(x), sym.dot(x, x), sym.sort(x)])
def test_views_of_all_kinds_of_memory(first: Symbol) -> None:
    """A value in another shape is no computation, whoever owns the memory."""
    cached = nd.CachedOp(sym.Group([sym.reshape_like(first, y) + 1, sym.reshape_like(first, y), sym.tanh(first.reshape((-1,)))]))
    arrays = [nd.array([[1, 2], [3, 4]]), nd.zeros((4, 1))]
    wanted = [array.asnumpy() for array in cached(*arrays)]
    with passes.without(*passes.PASSES, *passes.LATE_PASSES):
        for one, other in zip(cached(*arrays), wanted):
            np.testing.assert_array_equal(one.asnumpy(), other)


def test_inputs_are_never_written() -> None:
    array = nd.array([1.0, 2.0])
    nd.CachedOp(sym.exp(x) + x)(array).wait_to_read()
    assert array.asnumpy().tolist() == [1, 2]


def test_outputs_do_not_share_memory() -> None:
    """Not with each other, not with inputs, not with the arena of the next run."""
    net = sym.Group([x, x.reshape((4,)), sym.exp(x), sym.exp(x).reshape((4,))])
    cached = nd.CachedOp(net, {"static_alloc": True})
    array = nd.array([[1.0, 2.0], [3.0, 4.0]])
    first = cached(array)
    kept = [each.asnumpy() for each in first]
    for each in first:
        each[:] = -1
    assert array.asnumpy().tolist() == [[1, 2], [3, 4]]
    for one, other in zip(cached(array), kept):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_lives_that_overlap_get_bytes_of_their_own() -> None:
    spec = Spec.of((16,), "float32")
    lives = [(0, 2), (1, 3), (3, 5), (4, 6), (6, 6)]
    buffers = [Buffer(Where.ARENA, spec, first, last) for first, last in lives]
    total = arrange(buffers)
    assert total == 2 * spec.nbytes
    for one in buffers:
        for other in buffers:
            if one is not other and one.first <= other.last and other.first <= one.last:
                assert one.offset + spec.nbytes <= other.offset or other.offset + spec.nbytes <= one.offset


def test_runs_at_the_same_time_have_arenas_of_their_own() -> None:
    import threading

    net = sym.dot(sym.dot(x, x), sym.dot(x, x) + 1)
    cached = nd.CachedOp(net, {"static_alloc": True})
    arrays = [nd.random.normal(shape=(64, 64)) for _ in range(4)]
    wanted = [cached(array).asnumpy() for array in arrays]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if not np.array_equal(cached(arrays[number]).asnumpy(), wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- switches


def test_passes_can_be_switched_off() -> None:
    array = nd.ones((2,))
    cached = nd.CachedOp(sym.exp(x) * sym.exp(x))
    with passes.without("subexpressions"):
        cached(array)
    cached(array)
    off, on = list(cached.graph.programs.values())
    assert off is not None
    assert on is not None
    assert (off.source.count("np.exp"), on.source.count("np.exp")) == (2, 1)
    with pytest.raises(ArgumentError, match="inlining: unknown; there are batchnorm, folding"):
        passes.without("inlining").__enter__()


def test_the_environment_switches_passes_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIMX_DISABLE_PASSES", " fusion, folding,")
    assert passes.first_off() == {"fusion", "folding"}
    monkeypatch.setenv("MINIMX_DISABLE_PASSES", "fussion")
    with pytest.raises(
        ArgumentError, match="variable MINIMX_DISABLE_PASSES='fussion': passes: fussion: unknown; there are batchnorm"
    ):
        passes.first_off()
