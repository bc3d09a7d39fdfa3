"""What a backend is, and the registry of all.

A backend is a subclass of `Backend` with a name. It can be small:

    @register
    class Plain(Backend):
        name = "plain"

        def takes(self, node):
            return node.op.name == "relu"

        def compile(self, graph, context, options):
            return lambda data: [np.maximum(data, 0)]

Options are a dataclass: each field is a keyword of `optimize_for`, with its type and its default.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

from ...base import ArgumentError, FileFormatError, shown
from ...device import Context
from ...fields import converted
from ..composite import Subgraph
from ..graph import Node
from ..passes.typed import TypedGraph

#: Called with the arrays of a part's variables, NumPy's or CuPy's; returns those of its heads. Several threads may call it at once.
Compiled: TypeAlias = Callable[..., Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a backend that has none. A backend with options has a frozen dataclass of its own, derived from this one.

    Fields are annotated with `int`, `float`, `bool` or `str`, or one of these and None, and have defaults.
    """


class Backend:
    """What can compute parts of graphs. A subclass has a `name`, and says what it takes and how it is computed.

    **Source** MXNet `SubgraphProperty` and `CustomPartitioner`. **Book** chapter 13.
    """

    name: ClassVar[str] = ""
    options: ClassVar[type[Options]] = Options

    def takes(self, node: Node) -> bool:
        """Whether a node can be computed here, by its operator `node.op`; shapes and dtypes are not known yet."""
        raise NotImplementedError(f"{type(self).__name__} must define takes(node)")

    def joins(self, node: Node, reader: Node) -> bool:
        """Whether two nodes that it takes, of which `reader` reads the other, may be in one part. By default any two."""
        return True

    def accepts(self, graph: Subgraph) -> bool:
        """Whether a part is worth a node of its own. By default any part: `graph.order` has its nodes and variables."""
        return True

    def require(self) -> None:
        """Raise MXNetError if something that the backend needs is not installed. Asked before a graph is partitioned for it."""

    def compile(self, graph: TypedGraph, context: Context, options: Any) -> Compiled | None:
        """A function that computes a part for inference, or None to leave it to this package.

        It is called once for each combination of shapes and dtypes of the part's variables, when a program is made. Operators know that
        they are not in training; those that draw random numbers do so in training only, and need no key here.
        **Args** `graph`: its nodes (`order`) and `variables`, the entries asked for (`heads`), the `specs` of all entries, and which of its
        variables are `parameters`: what is made of those is kept best by a `Prepared`. `options`: an object of the class `options`.
        **Returns** a function from the arrays of the variables, in their order, to those of the heads, contiguous and with the shapes and
        dtypes that `graph.specs` has. It must not change or keep its arguments.
        """
        raise NotImplementedError(f"{type(self).__name__} must define compile(graph, context, options)")

    def chosen(self, given: Mapping[str, Any]) -> Options:
        """The options that `given` means. **Raises** ArgumentError for an unknown one, or a value that does not fit."""
        fields = {field.name: field for field in dataclasses.fields(self.options)}
        unknown = given.keys() - fields.keys()
        if unknown:
            known = ", ".join(f"{name}={field.default!r}" for name, field in fields.items()) or "none"
            raise ArgumentError(f"backend {self.name}: unknown option {', '.join(sorted(unknown))}; it takes {known}")
        values = {
            name: converted(f"backend {self.name}", name, _annotation(fields[name]), value) for name, value in given.items()
        }
        return self.options(**values)

    def spelt(self, options: Options) -> str:
        """Options as a file has them: an object of JSON with those that are not the default."""
        given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
        defaults = {field.name: field.default for field in dataclasses.fields(options)}
        return json.dumps({name: value for name, value in given.items() if value != defaults[name]}) if given != defaults else ""

    def parsed(self, text: str) -> Options:
        """The options that `spelt` wrote. **Raises** FileFormatError for anything else."""
        try:
            given = json.loads(text or "{}")
        except ValueError:
            given = None
        if not isinstance(given, dict):
            raise FileFormatError(f"backend {self.name}: the options in the file are {shown(text)}, wants an object of JSON")
        return self.chosen(given)


def _annotation(field: dataclasses.Field[Any]) -> str:
    """A field's annotation as it was written, also in a module that does not keep annotations as strings."""
    return field.type.__name__ if isinstance(field.type, type) else str(field.type)


B = TypeVar("B", bound=type[Backend])
_backends: dict[str, Backend] = {}
_provided: dict[str, str] = {}


def register(backend: B) -> B:
    """Class decorator: make a backend known under its name. One that had the name before is replaced."""
    if not (isinstance(backend, type) and issubclass(backend, Backend)):
        raise ArgumentError(f"register: a subclass of Backend is wanted, got {shown(backend)}")
    if not isinstance(backend.name, str) or not backend.name:
        raise ArgumentError(f"register: {backend.__name__} needs a name, a class attribute")
    _backends[backend.name] = backend()
    return backend


def provide(name: str, module: str) -> None:
    """Say that importing `module` registers the backend `name`: it is imported when somebody first asks for that."""
    _provided[name] = module


def registered() -> dict[str, Backend]:
    """All backends by name; those of modules that have not been imported yet are not among them."""
    return dict(_backends)


def names() -> list[str]:
    """The names of all backends."""
    return sorted({*_backends, *_provided})


def find(name: Any) -> Backend:
    """The backend called `name`. **Raises** ArgumentError, which lists all, if there is none."""
    if not isinstance(name, str):
        raise ArgumentError(f"backend must be the name of one, got {shown(name)}")
    called = next((each for each in names() if each.lower() == name.lower()), name)
    if called not in _backends and called in _provided:
        importlib.import_module(_provided[called])
    found = _backends.get(called)
    if found is None:
        raise ArgumentError(
            f"there is no backend {name!r}; there are {', '.join(names())}. minimx.sym.backends.register makes one known"
        )
    return found
