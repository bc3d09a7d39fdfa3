"""Keywords that a function or class does not know: the error says which one was meant.

Who comes from PyTorch or Keras writes `lr` for `learning_rate` and `dim` for `axis`; others mistype. `name_unknown` is called for
each class of a registry (optimizers, initializers, metrics), and by blocks, schedules and iterators; operators ask for the text alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from .base import ArgumentError, MXNetError, did_you_mean

Class = TypeVar("Class", bound=type)

#: What PyTorch and Keras call an argument, and what MXNet calls it: the first of the names, or pairs of names, that there are.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    # optimizers and schedules
    "lr": ("learning_rate", "base_lr"), "initial_learning_rate": ("base_lr",), "weight_decay": ("wd",), "decay": ("wd",),
    "betas": ("beta1 beta2",), "beta_1": ("beta1",), "beta_2": ("beta2",), "eps": ("epsilon",), "clipvalue": ("clip_gradient",),
    "rho": ("gamma1",), "gamma": ("factor",), "step_size": ("step",), "milestones": ("step",), "T_max": ("max_update",),
    "eta_min": ("final_lr",),
    # initializers
    "std": ("sigma", "scale"), "stddev": ("sigma", "scale"), "gain": ("magnitude", "scale"), "val": ("value",),
    # layers
    "out_features": ("units",), "in_features": ("in_units",), "input_dim": ("in_units",), "out_channels": ("channels",),
    "filters": ("channels",), "num_features": ("in_channels",), "num_channels": ("in_channels",), "normalized_shape": ("in_channels",),
    "stride": ("strides",), "kernel_size": ("pool_size",), "dilation_rate": ("dilation",), "data_format": ("layout",),
    "batch_first": ("layout",), "bias": ("use_bias", "no_bias"), "affine": ("center scale",), "p": ("rate",),
    "negative_slope": ("alpha", "slope"), "nonlinearity": ("activation",), "kernel_initializer": ("weight_initializer",),
    "num_embeddings": ("input_dim",), "embedding_dim": ("output_dim",),
    # data, and operators
    "batch": ("batch_size",), "collate_fn": ("batchify_fn",), "drop_last": ("last_batch",), "dim": ("axis",), "dims": ("axes", "axis"),
    "keepdim": ("keepdims",), "size": ("shape",), "device": ("ctx",),
}  # fmt: skip


def meant(name: str, known: Sequence[str]) -> str:
    """ "; did you mean 'axis'?" for the end of an error about the unknown argument `name`; nothing if none of `known` is near."""
    for each in ELSEWHERE.get(name, ()):
        names = each.split()
        if set(names) <= set(known):
            return f"; did you mean {' and '.join(map(repr, names))}?"
    return did_you_mean(name, known)


def what_it_takes(name: str, known: Sequence[str]) -> str:
    """The same with what there is: "; did you mean 'axis'? It takes data, axis"."""
    hint, names = meant(name, known), ", ".join(known) or "none"
    return f"{hint} It takes {names}" if hint else f"; it takes {names}"


def arguments_of(cls: type) -> list[str]:
    """Names of the keywords that the class takes, and, where `__init__` hands unknown ones on, those of its bases."""
    found: dict[str, None] = {}
    for each in cls.__mro__:
        if "__init__" in each.__dict__:
            parameters = inspect.signature(each.__dict__["__init__"]).parameters.values()
            found.update(
                (one.name, None) for one in list(parameters)[1:] if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
            )
            if all(one.kind is not one.VAR_KEYWORD for one in parameters):
                break
    return list(found)


def require_known(cls: type, error: TypeError, given: Iterable[str]) -> None:
    """Raise ArgumentError if calling `cls` with the keywords `given` gave a TypeError because one of them is unknown.

    Where a wanted argument is missing, the unknown one is what was written for it.
    """
    if isinstance(error, MXNetError) or not any(words in str(error) for words in ("unexpected keyword", "missing")):
        return
    known = arguments_of(cls)
    for name in given:
        if name not in known:
            raise ArgumentError(f"{cls.__name__} takes no argument {name!r}{what_it_takes(name, known)}") from None


def _require_no_dict(cls: type, init: Any) -> None:
    """Raise ArgumentError if the first argument of `init`, for which a dict was given, is a number."""
    first = list(inspect.signature(init).parameters.values())[1]
    if str(first.annotation).split(" | ")[0] in ("float", "int"):
        name = cls.__name__
        raise ArgumentError(
            f"{name} takes its arguments by name, {name}({first.name}=...), and not in a dict; to use one, write {name}(**{{...}})"
        )


def name_unknown(cls: Class) -> Class:
    """Class decorator: let an error about an unknown keyword name the one that was meant. Users' own classes are left as they are."""
    init: Any = cls.__dict__.get("__init__")
    if init is None or not cls.__module__.startswith(__name__.partition(".")[0] + "."):
        return cls

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[0], dict):
            _require_no_dict(type(self), init)
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            require_known(type(self), error, kwargs)
            raise

    cls.__init__ = __init__  # type: ignore[misc]
    return cls
