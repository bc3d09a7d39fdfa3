"""Names with an underscore that toolkits written for MXNet take from it: GluonCV, GluonNLP and their kind.

They are no part of MXNet's interface, and so none of minimx's; alias.py adds them to minimx's modules for as long as these stand for
MXNet's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ..base import ArgumentError, shown
from ..device import Context
from ..gluon import repository
from ..nd import NDArray
from ..ops.resampling import resolved

RANDOM_METHOD = 10


def _as_list(obj: Any) -> Any:
    """A list or tuple as it is, anything else in a list."""
    return obj if isinstance(obj, (list, tuple)) else [obj]


def _as_in_context(data: Any, ctx: Context) -> Any:
    """A batch - an NDArray, or lists of them - on the device `ctx`; anything else in it as it is."""
    if isinstance(data, NDArray):
        return data.as_in_context(ctx)
    return [_as_in_context(each, ctx) for each in data] if isinstance(data, (list, tuple)) else data


def _get_repo_url() -> str:
    """Where MXNet's project published its files, with a slash at the end."""
    return repository.url("", "").rstrip("/") + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """Where it published one file."""
    return repository.url(namespace, filename)


def _get_interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """The method (0 to 4) that `interp` stands for when an image is resized.

    **Args** `interp`: 0 to 4; 9 by the sizes, or cubic if there are none; 10 any of them. `sizes`: height and width before, and after.
    """
    if interp == RANDOM_METHOD:
        return random.randint(0, 4)
    if interp not in (0, 1, 2, 3, 4, 9) or len(sizes) not in (0, 4):
        raise ArgumentError(
            f"an interpolation from 0 to 4, 9 or 10 is wanted, with no sizes or four, got {shown(interp)}, {shown(sizes)}"
        )
    if not sizes:
        return 2 if interp == 9 else interp
    before, after = (sizes[0], sizes[1]), (sizes[2], sizes[3])
    return resolved(interp, before, after)


class _MultiWorkerIter:
    """A part of MXNet's DataLoader, which GluonCV's loader with random transforms is made of. It can be imported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(
            "this loader is made of parts of MXNet's DataLoader; use gluon.data.DataLoader, or num_workers=0 if it has that"
        )


#: The names by module, a path below mxnet.
NAMES: dict[str, dict[str, Any]] = {
    "base": {"_as_list": _as_list},
    "contrib.amp": {"_amp_initialized": False},  # GluonNLP asks it whether to compute in float16
    "gluon.data.dataloader": {
        "ForkingPickler": ForkingPickler,
        "_MultiWorkerIter": _MultiWorkerIter,
        "_as_in_context": _as_in_context,
    },
    "gluon.utils": {"_get_repo_url": _get_repo_url, "_get_repo_file_url": _get_repo_file_url},
    "image.image": {"_get_interp_method": _get_interp_method},
}
