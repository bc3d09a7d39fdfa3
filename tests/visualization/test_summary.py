"""print_summary: the table that MXNet 1.9.1 prints, with the numbers of parameters that the variables have."""

from __future__ import annotations

import pytest

import minimx as mx
from minimx import sym

TABLE = """\
________________________________________________________________________________
Layer (type)                    Output Shape    Param #     Previous Layer      
================================================================================
x(null)                         3x8x8           0                               
________________________________________________________________________________
c1(Convolution)                 4x8x8           112         x                   
________________________________________________________________________________
c2(Convolution)                 4x8x8           144         c1                  
________________________________________________________________________________
plus(elemwise_add)              4x8x8           0           c1                  
                                                            c2                  
________________________________________________________________________________
l(LeakyReLU)                    4x8x8           0           plus                
________________________________________________________________________________
fc(FullyConnected)              3               771         l                   
________________________________________________________________________________
softmax(SoftmaxOutput)          3               0           fc                  
================================================================================
Total params: 1027
________________________________________________________________________________
"""  # noqa: W291  # the columns are filled up with blanks


def network():
    first = sym.Convolution(sym.var("x"), num_filter=4, kernel=(3, 3), pad=(1, 1), name="c1")
    second = sym.Convolution(first, num_filter=4, kernel=(3, 3), pad=(1, 1), no_bias=True, name="c2")
    net = sym.LeakyReLU(sym.elemwise_add(first, second, name="plus"), act_type="leaky", name="l")
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc"), name="softmax")


def parameters(capsys, *arguments, **options):
    """The column of parameters by layer, and the total."""
    mx.viz.print_summary(*arguments, **options)
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines[3:] if "(" in line]
    found = {line.split("(")[0]: int(line[76:88]) for line in rows}
    (total,) = [int(line.split(": ")[1]) for line in lines if line.startswith("Total")]
    return found, total


def test_table(capsys):
    mx.viz.print_summary(network(), {"x": (2, 3, 8, 8)}, line_length=80, positions=[0.4, 0.6, 0.75, 1])
    assert capsys.readouterr().out == TABLE
    mx.viz.print_summary(network(), {"x": (2, 3, 8, 8)}, line_length=80, positions=[32, 48, 60, 80])
    assert capsys.readouterr().out == TABLE


def test_parameters_are_those_of_the_layers(capsys):
    net = mx.gluon.nn.HybridSequential()
    net.add(
        mx.gluon.nn.Conv2D(8, 3, groups=2, in_channels=4), mx.gluon.nn.BatchNorm(in_channels=8), mx.gluon.nn.PReLU(),
        mx.gluon.nn.Conv2DTranspose(6, 2, in_channels=8), mx.gluon.nn.LayerNorm(in_channels=5), mx.gluon.nn.Dense(7, in_units=150),
    )  # fmt: skip
    _, total = parameters(capsys, net(sym.var("data")), {"data": (1, 4, 6, 6)})
    assert total == sum(param.data().size for param in initialized(net).values() if "running" not in param.name)


def initialized(net):
    net.initialize()
    return net.collect_params()


def test_shared_parameters_count_once(capsys):
    weight = sym.var("weight")
    net = sym.FullyConnected(sym.var("data"), weight, num_hidden=4, no_bias=True, name="a")
    net = sym.FullyConnected(net, weight, num_hidden=4, no_bias=True, name="b")
    assert parameters(capsys, net, {"data": (1, 4)}) == ({"data": 0, "a": 16, "b": 0}, 16)


def test_without_shapes(capsys):
    net = sym.Embedding(sym.var("data"), input_dim=10, output_dim=3, name="emb")
    net = sym.BatchNorm(sym.Convolution(net, num_filter=5, kernel=(3,), name="conv"), name="bn")
    net = sym.FullyConnected(net, num_hidden=6, name="fc")
    assert parameters(capsys, net) == ({"data": 0, "emb": 30, "conv": 5, "bn": 0, "fc": 6}, 41)


def test_several_outputs_and_long_names(capsys):
    parts = sym.SliceChannel(sym.var("data"), num_outputs=2, name="a_name_that_is_far_too_long_for_the_column_in_which_it_stands")
    mx.viz.print_summary(parts, {"data": (3, 8)}, line_length=60)
    row = capsys.readouterr().out.splitlines()[5]
    assert row == "a_name_that_is_far_too_lon4           0     data            "


def test_errors():
    with pytest.raises(TypeError, match="symbol must be a Symbol, got 1"):
        mx.viz.print_summary(1)
    with (
        pytest.warns(UserWarning, match="Cannot"),
        pytest.raises(ValueError, match="the shapes given, of nothing, do not determine all others"),
    ):
        mx.viz.print_summary(network(), {})
