"""A value that is known when a program is made, as an operator without inputs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...op import Array, Op, Spec


class Constant(Op):
    """An operator whose output is known already: `value`, a NumPy array that nobody may change."""

    name: ClassVar[str] = "constant"
    inputs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        value.flags.writeable = False
        self.__dict__["value"] = value

    @property
    def value(self) -> np.ndarray[Any, Any]:
        return self.__dict__["value"]

    def infer(self) -> Spec:
        return Spec.of(self.value.shape, self.value.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.asarray(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and same_value(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.value.shape, self.value.dtype, self.value.tobytes()))


def same_value(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are equal bit for bit."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
