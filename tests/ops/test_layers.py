"""What graphs ask of layers beside their values: unknown shapes completed, optional inputs that are wanted, attributes read back."""

from __future__ import annotations

from typing import Any

import pytest

from minimx.op import REGISTRY, Op, Spec
from minimx.ops import loss, nn, norm, softmax


def spec(*shape: int, dtype: str = "float32") -> Spec:
    return Spec.of(shape, dtype)


LAYER = nn.FullyConnectedLayer(num_hidden=5)
ROWS = nn.FullyConnectedLayer(num_hidden=5, flatten=False)
PRELU = nn.LeakyRectifier.choose("prelu", 0.25, 0.125, 0.334)
FILLED: list[tuple[Op, tuple[Any, ...], tuple[Any, ...]]] = [
    (LAYER, (spec(2, 3, 4), None, None), (spec(2, 3, 4), spec(5, 12), spec(5))),
    (LAYER, (spec(2, 3, dtype="float16"), None, None), tuple(spec(*s, dtype="float16") for s in ((2, 3), (5, 3), (5,)))),
    (LAYER, (spec(2, 3), spec(5, 0), spec(0)), (spec(2, 3), spec(5, 3), spec(5))),
    (LAYER, (spec(0, 3), None, None), (spec(0, 3), spec(5, 3), spec(5))),
    (LAYER, (spec(2, 0), spec(5, 3), None), (spec(2, 3), spec(5, 3), spec(5))),
    (LAYER, (None, spec(5, 3), None), (None, spec(5, 3), spec(5))),
    (LAYER, (None, None, None), (None, None, None)),
    (ROWS, (spec(2, 7, 0), spec(5, 3), None), (spec(2, 7, 3), spec(5, 3), spec(5))),
    (ROWS, (spec(2, 7, 3), None), (spec(2, 7, 3), spec(5, 3))),
    (PRELU, (spec(2, 3, 4), None), (spec(2, 3, 4), spec(3))),
    (PRELU, (spec(2, 3, 4), spec(1)), (spec(2, 3, 4), spec(1))),
    (softmax.Softmax(use_length=True), (spec(2, 3, 4), None), (spec(2, 3, 4), spec(2, 3, dtype="int32"))),
    (norm.LayerNormLayer(axis=1), (spec(2, 3, 4), None, None), (spec(2, 3, 4), spec(3), spec(3))),
    (norm.GroupNormLayer(num_groups=2), (spec(2, 4, 3), None, None), (spec(2, 4, 3), spec(2), spec(2))),
    (norm.InstanceNormLayer(), (spec(2, 4, 3), None, spec(0)), (spec(2, 4, 3), spec(4), spec(4))),
    (loss.SoftmaxOutputLayer(), (spec(2, 4), None), (spec(2, 4), spec(2))),
    (loss.SoftmaxOutputLayer(multi_output=True), (spec(2, 4, 3, 3), None), (spec(2, 4, 3, 3), spec(2, 9))),
    (loss.SoftmaxOutputLayer(preserve_shape=True), (spec(2, 4, 3), None), (spec(2, 4, 3), spec(2, 4))),
    (loss.LinearRegressionLayer(), (spec(2, 4), None), (spec(2, 4), spec(2, 4))),
    (loss.LogisticRegressionLayer(), (spec(2, 1), None), (spec(2, 1), spec(2))),
    (loss.SVMOutputLayer(), (spec(2, 4), None), (spec(2, 4), spec(2))),
]


@pytest.mark.parametrize(("op", "known", "wanted"), FILLED)
def test_unknown_shapes(op: Op, known: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    assert op.fill(*known) == wanted


def test_optional_inputs() -> None:
    assert LAYER.wants("bias")
    assert not nn.FullyConnectedLayer(num_hidden=5, no_bias=True).wants("bias")
    assert softmax.Softmax(use_length=True).wants("length")
    assert not softmax.Softmax().wants("length")


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("FullyConnected", {"num_hidden": "5", "no_bias": "True", "flatten": "False"}),
        ("LeakyReLU", {"act_type": "prelu"}),
        ("LeakyReLU", {"act_type": "rrelu", "lower_bound": "0.1"}),
        ("LeakyReLU", {"act_type": "elu", "slope": "0.5"}),
        ("Dropout", {"p": "0.3", "axes": "(0, 2)", "mode": "always"}),
        ("softmax", {"axis": "1", "dtype": "float64", "temperature": "2.0"}),
        ("SoftmaxOutput", {"normalization": "valid", "use_ignore": "True", "ignore_label": "255.0"}),
        ("LayerNorm", {"axis": "1", "eps": "0.001", "output_mean_var": "True"}),
        ("multi_sgd_update", {"lrs": "(0.1, 0.2)", "wds": "(0.0, 0.1)", "num_weights": "2"}),
    ],
)
def test_attributes(name: str, attrs: dict[str, str]) -> None:
    """Attributes survive MXNet's JSON, and so does the name."""
    op = REGISTRY[name].from_attrs(attrs)
    assert op.attrs() == attrs
    assert op.name == name
    assert REGISTRY[op.name].from_attrs(op.attrs()) == op


def test_variants_of_leaky_relu() -> None:
    """One name in MXNet's files, a class each."""
    found = [type(REGISTRY["LeakyReLU"].from_attrs({"act_type": name})) for name in nn.RECTIFIERS]
    assert found == [nn.LeakyReLULayer] * 4 + [nn.PReLU, nn.RReLU]


def test_hidden_outputs() -> None:
    """A mask exists only where something is dropped."""
    for op in (
        nn.DropoutLayer(),
        nn.DropoutLayer(mode="always"),
        nn.DropoutLayer(training=True),
        nn.DropoutLayer(p=0.0, training=True),
    ):
        inferred = op.infer(spec(2, 3))
        assert op.num_visible == 1
        assert op.num_outputs == (len(inferred) if isinstance(inferred, tuple) else 1) == (2 if op.active else 1)
