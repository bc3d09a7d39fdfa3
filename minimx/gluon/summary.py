"""The table that `net.summary(x)` prints: layers in the order in which they run, shapes, and numbers of parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..nd import NDArray
from .parameter import Parameter, ParameterError
from .utils import HookHandle


class Row(NamedTuple):
    """A layer that ran: its name, the shape of its output, and elements of its parameters: all, those that learn, those seen before."""

    layer: str
    shape: str
    size: int = 0
    trainable: int = 0
    shared: int = 0


def summarize(block: Any, inputs: tuple[Any, ...]) -> None:
    """Run `block` on `inputs` and print the table. Raises ParameterError (an AssertionError) if a part of it is hybridized."""
    rows = [Row("Input", shape_text(inputs))]
    seen: set[Parameter] = set()
    handles: list[HookHandle] = []

    def note(layer: Any, _: Any, outputs: Any) -> None:
        sizes = {param: param.data().size for param in layer.params.values()}
        rows.append(
            Row(
                f"{type(layer).__name__}-{len(rows)}",
                shape_text(outputs),
                sum(sizes.values()),
                sum(size for param, size in sizes.items() if param.grad_req != "null"),
                sum(size for param, size in sizes.items() if param in seen),
            )
        )
        seen.update(sizes)

    def refuse(layer: Any) -> None:
        if getattr(layer, "_active", False):
            part = "" if getattr(block, "_active", False) else f", of which {layer.name} is"
            raise ParameterError(f'"{block.name}" must not be hybridized to print summary{part}; call net.hybridize(False) first')

    def watch(layer: Any) -> None:
        if not layer.is_container:
            handles.append(layer.register_forward_hook(note))

    try:
        block.apply(refuse)
        block.apply(watch)
        block(*inputs)
    finally:
        for handle in handles:
            handle.detach()
    print(table(rows))


def shape_text(value: Any) -> str:
    """The shapes in a nested value; what is no array is shown as it is."""
    shapes = _shapes(value)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)


def _shapes(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shapes(each) for each in value]
    return value.shape if isinstance(value, NDArray) else value


def table(rows: list[Row]) -> str:
    """The rows as text, with sums below."""
    total, trainable, shared = (sum(getattr(row, key) for row in rows) for key in ("size", "trainable", "shared"))
    return "\n".join([
        "-" * 80,
        f"{'Layer (type)':>20}  {'Output Shape':>42} {'Param #':>15}",
        "=" * 80,
        *(f"{row.layer:>20}  {row.shape:>42} {row.size:>15}" for row in rows),
        "=" * 80,
        "Parameters in forward computation graph, duplicate included",
        f"   Total params: {total}",
        f"   Trainable params: {trainable}",
        f"   Non-trainable params: {total - trainable}",
        f"Shared params in forward computation graph: {shared}",
        f"Unique parameters in model: {total - shared}",
        "-" * 80,
    ])  # fmt: skip
