"""The parameters of a block, or of a whole network, by their full names.

A ParameterDict makes parameters, finds those that another one shares with it, and initializes, saves and loads all at once. What a
single parameter is stands in weight.py. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import initializer, nd
from ..base import ArgumentError, as_dtype
from ..device import Context
from ..files import PathLike, as_path
from ..nd import NDArray
from ..sym import Symbol
from .utils import brief_list, indented
from .weight import Constant, DeferredInitializationError, Devices, Parameter, ParameterError, as_shape

__all__ = ["Constant", "DeferredInitializationError", "Parameter", "ParameterDict", "ParameterError", "tensor_types"]

tensor_types = (Symbol, NDArray)


class ParameterDict:
    """Parameters by their full names, in the order in which they were made.

    **Args** `prefix`: goes before the names of parameters made by `get`. `shared`: another dict, in which `get` looks before it makes
    one. **Source** MXNet `gluon.ParameterDict`.

    >>> from minimx import gluon
    >>> params = gluon.ParameterDict("net_")
    >>> params.get("weight", shape=(2, 3), dtype="float32").name
    'net_weight'
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    def __repr__(self) -> str:
        name = self._prefix + " " if self._prefix else ""
        lines = "\n".join(indented(f"  {param}", 2) for param in self.values())
        return f"{name}(\n{lines}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> Any:
        """Names and parameters."""
        return self._params.items()

    def keys(self) -> Any:
        """Names."""
        return self._params.keys()

    def values(self) -> Any:
        """Parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """What goes before the names of parameters that `get` makes."""
        return self._prefix

    # ---- making and sharing

    def _find(self, name: str) -> Parameter | None:
        """The parameter of this full name, taken over from the shared dict if it is only there."""
        if name not in self._params and self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
        return self._params.get(name)

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter `prefix + name`: the one in this dict, else in the shared one, else a new one made with `kwargs`.

        **Raises** AssertionError if the one that is found differs from what `kwargs` ask for; unknown lengths of its shape are added.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            found = self._params[full] = Parameter(full, **kwargs)
            return found
        for key, value in kwargs.items():
            self._reconcile(found, key, value)
        return found

    @staticmethod
    def _reconcile(param: Parameter, key: str, wanted: Any) -> None:
        """Check one attribute of a parameter that is taken over, or add it where it is missing."""
        if key in ("allow_deferred_init", "differentiable", "stype", "grad_stype") or wanted is None:
            return  # how it was made is its owner's business
        if key not in ("grad_req", "shape", "dtype", "lr_mult", "wd_mult", "init"):
            raise ArgumentError(f"ParameterDict.get: a parameter has no attribute {key!r}")
        stored = getattr(param, key)
        if stored is None:
            setattr(param, key, wanted)
            return
        if key == "shape":
            new = as_shape(wanted)
            if new is not None and len(new) == len(stored) and all(a == b or not a or not b for a, b in zip(new, stored)):
                param._shape = tuple(a or b for a, b in zip(stored, new))
                return
        elif (as_dtype(wanted) == as_dtype(stored)) if key == "dtype" else wanted == stored:
            return
        raise ParameterError(
            f"Cannot retrieve Parameter '{param.name}' because desired attribute does not match with stored for attribute '{key}': "
            f"desired '{wanted}' vs stored '{stored}'."
        )

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The Constant `prefix + name`: the one in this dict, else in the shared one, else a new one with `value`.

        **Raises** KeyError if there is none and no value is given; AssertionError if there is one with another value, or no constant.
        """
        full = self._prefix + name
        found = self._find(full)
        if found is None:
            if value is None:
                raise KeyError(f"No constant named '{full}'. Please specify value if you want to create a new constant.")
            found = self._params[full] = Constant(full, value)
        elif value is not None:
            if not isinstance(found, Constant):
                raise ParameterError(f"Parameter '{full}' already exists but it is not a constant.")
            if not np.array_equal(found.value.asnumpy(), np.asarray(value)):
                raise ParameterError(f"Constant '{full}' already exists but its value doesn't match the new value")
        return found

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Add all parameters of `other`. **Raises** AssertionError if another one has the same name."""
        for name, param in other.items():
            if self._params.get(name, param) is not param:
                raise ParameterError(
                    f"Cannot update self with other because they have different Parameters with the same name '{name}'; "
                    "give the blocks different prefixes, or make them inside name_scope()"
                )
        self._params.update(other.items())

    # ---- all at once

    def initialize(self, init: Any = None, ctx: Devices = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Initialize all parameters on the devices `ctx`. `init` (Uniform() by default) serves those that have none of their own."""
        default = initializer.Uniform() if init is None else init
        if verbose:
            default = initializer.create(default).set_verbosity(verbose)
        for param in self.values():
            param.initialize(None, ctx, default, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to 0."""
        for param in self.values():
            param.zero_grad()

    def reset_ctx(self, ctx: Devices) -> None:
        """Move all parameters to other devices."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """All devices on which parameters are."""
        return list(dict.fromkeys(context for param in self.values() for context in param.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters: `setattr("grad_req", "null")`."""
        for param in self.values():
            setattr(param, name, value)

    # ---- files

    def save(self, filename: PathLike, strip_prefix: str = "") -> None:
        """Write all parameters to a file, by their names without `strip_prefix`. **Raises** ValueError for a name that lacks it."""
        for param in self.values():
            if not param.name.startswith(strip_prefix):
                raise ParameterError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{param.name}' does not start with it. "
                    "Does the block share parameters of another one, or was a child made outside name_scope()? save_parameters() does "
                    "without prefixes."
                )
        nd.save(filename, {param.name[len(strip_prefix) :]: param._reduce() for param in self.values()})

    def load(
        self, filename: PathLike, ctx: Devices = None, allow_missing: bool = False, ignore_extra: bool = False,
        restore_prefix: str = "", cast_dtype: bool = False, dtype_source: str = "current",
    ) -> None:  # fmt: skip
        """Read parameters from a file, by their names with `restore_prefix` before them.

        **Args** `ctx`: devices of parameters that are not initialized yet. `allow_missing`, `ignore_extra`: the file may lack parameters,
        or have more. `cast_dtype`: where dtypes differ, convert to that of the parameter (`dtype_source` "current") or take that of the
        file ("saved"). **Raises** AssertionError for whatever does not fit.
        """
        for name in self.keys():
            if not name.startswith(restore_prefix):
                raise ParameterError(f"restore_prefix is '{restore_prefix}' but Parameter name '{name}' does not start with it")
        path = as_path(filename)
        loaded = named_arrays(nd.load(path), path)
        self.load_dict(loaded, ctx, allow_missing, ignore_extra, restore_prefix, path, cast_dtype, dtype_source)

    def load_dict(
        self, param_dict: Mapping[str, NDArray], ctx: Devices = None, allow_missing: bool = False,
        ignore_extra: bool = False, restore_prefix: str = "", filename: str | None = None, cast_dtype: bool = False,
        dtype_source: str = "current", advice: str | None = None,
    ) -> None:  # fmt: skip
        """`load` from a dict; "arg:" and "aux:" before a name do not count. `advice`: what to do if names do not fit."""
        named = {
            restore_prefix + (name[4:] if name.startswith(("arg:", "aux:")) else name): array
            for name, array in param_dict.items()
        }
        source = f"file '{filename}'" if filename else "param_dict"
        if len(named) != len(param_dict):
            raise ParameterError(f"{source} has both 'arg:' and 'aux:' arrays of one name: {brief_list(param_dict)}")
        if advice is None:
            advice = "Please make sure source and target networks have the same prefix."
            if any("." in name for name in named) and not any("." in name for name in self.keys()):
                advice = f"{BY_PLACES}: read it with the network's load_parameters."
        for name in self.keys():
            if name not in named and not allow_missing:
                written = [each.removeprefix(restore_prefix) for each in named]
                raise ParameterError(
                    f"Parameter '{name.removeprefix(restore_prefix)}' is missing in {source}, which contains parameters: "
                    f"{brief_list(written)}. Set allow_missing=True to ignore missing parameters. {advice}"
                )
        for name, array in named.items():
            if name in self._params:
                self._params[name]._load_init(array, ctx, cast_dtype, dtype_source)
            elif not ignore_extra:
                raise ParameterError(
                    f"Parameter '{name.removeprefix(restore_prefix)}' loaded from {source} is not present in ParameterDict, choices are: "
                    f"{brief_list(self.keys())}. Set ignore_extra=True to ignore. {advice}"
                )


#: The kinds of files that are mistaken for each other, by their names.
BY_EXPORT = "The file was written by export, with arg: or aux: before the full names"
BY_PLACES = "The file was written by save_parameters, with names that are places in the network's tree"


def is_exported(names: Iterable[str]) -> bool:
    """Whether names are those of a file that `export` writes, rather than `save_parameters` or `ParameterDict.save`."""
    return any(name.startswith(("arg:", "aux:")) for name in names)


def named_arrays(loaded: Any, filename: str) -> Mapping[str, NDArray]:
    """What a file holds, if that is arrays with names (or nothing). Raises ParameterError otherwise."""
    if isinstance(loaded, list) and loaded:
        raise ParameterError(f"file '{filename}' holds arrays without names; parameters need them")
    return dict(loaded)
