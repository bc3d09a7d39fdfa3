"""Rows for `Custom`, an operator that a user writes. What else it does is tested in tests/custom."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx.base import ArgumentError, ShapeError
from minimx.nd import Custom
from minimx.operator import CustomOp, CustomOpProp, register

from .harness import Bad, Case, normal


class Scale(CustomOp):
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        self.assign(out_data[0], req[0], in_data[0] * in_data[1] * self.factor)

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        for number in (0, 1):
            self.assign(in_grad[number], req[number], out_grad[0] * in_data[1 - number] * self.factor)


@register("row_scale")
class ScaleProp(CustomOpProp):
    def __init__(self, factor: str = "1") -> None:
        super().__init__()
        self.factor = float(factor)

    def list_arguments(self) -> list[str]:
        return ["data", "weight"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return [in_shape[0], in_shape[0]], [in_shape[0]]

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return Scale(self.factor)


CASES = [
    Case(
        "Custom", lambda x, y: Custom(x, y, op_type="row_scale", factor=2.5), (normal(3, 4), normal(3, 4)),
        lambda x, y: (x * y * np.array(2.5, x.dtype)).astype(x.dtype), second=False,
        bad=(
            Bad(lambda nd: nd.Custom(nd.ones((2,)), op_type="row_scale"), ArgumentError, "input 'weight' is missing"),
            Bad(lambda nd: nd.Custom(nd.ones((2,)), nd.ones((3,)), op_type="row_scale"), ShapeError, "infer_shape wants"),
            Bad(lambda nd: nd.Custom(nd.ones((2,)), op_type="no_row"), ArgumentError, "no operator is registered as 'no_row'"),
        ),
    ),
]  # fmt: skip
