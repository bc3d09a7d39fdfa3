"""`mx.onnx`: models as ONNX files, for programs that know nothing of Python.

`export_model` writes them. Each operator has a converter, in a file for its family; `converts` defines one more. `mx.contrib.onnx` reads
such files, and sym.backends runs parts of a graph in ONNX's runtimes (backends.py). Book: chapter 13.
"""

from . import activation, detection, elementwise, layers, normalization, pooling, recurrent, reduction, sampling, shapes
from .export import export_model, get_operator_support
from .graph import UnsupportedError, converts

__all__ = ["UnsupportedError", "converts", "export_model", "get_operator_support"]

#: The families of converters, which fill the table as they are imported.
FAMILIES = (activation, detection, elementwise, layers, normalization, pooling, recurrent, reduction, sampling, shapes)
