"""What MXNet calls things in a graph: names of nodes, inputs and outputs, and which attributes it writes down.

Nothing here changes a value. It makes graphs and files look as MXNet's own, so that scripts which ask for `fc1_weight` or
`dropout0_identity0_output` find it, and files equal those that MXNet writes. What an operator is stands in minimx/op.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base import ArgumentError, MXNetError
from ..fields import spelt
from ..op import NODE_KEYS, Op

# ---- names

# Nodes are named after the function that was called, in lower case; here the operators whose functions have another name than their own.
# Where an operator has several functions, the others give their names along: see `also_called` in minimx/op.py.
HINTS = {
    "BlockGrad": "stop_gradient", "SliceChannel": "split", "SwapAxis": "swapaxes", "_copy": "identity", "_np_cumsum": "cumsum",
    "_random_exponential_like": "exponential_like", "_random_gamma_like": "gamma_like",
    "_random_generalized_negative_binomial_like": "generalized_negative_binomial_like",
    "_random_negative_binomial_like": "negative_binomial_like", "_random_normal_like": "normal_like",
    "_random_poisson_like": "poisson_like", "_random_uniform_like": "uniform_like",
    "_ravel_multi_index": "ravel_multi_index", "_shuffle": "shuffle", "_unravel_index": "unravel_index",
}  # fmt: skip
PREFIXES = (
    "_contrib_",
    "_image_",
    "_linalg_",
    "_sparse_",
)  # MXNet's modules: `sym.contrib.box_nms` is the operator `_contrib_box_nms`
PUBLIC = ("_random_pdf_", "_sample_")  # families whose functions are called as their operators, without the first underscore


def hint_of(op: Op) -> str:
    """What the automatic name of a node of `op` begins with: `fullyconnected` in `fullyconnected0`."""
    found = HINTS.get(op.name)
    if found is not None:
        return found
    for prefix in PREFIXES:
        if op.name.startswith(prefix):
            return op.name[len(prefix) :].lower()
    return op.name[1:] if op.name.startswith(PUBLIC) else op.name.lower()


# Outputs are called `<node>_output`, several `<node>_output0`, `<node>_output1`, ...; here the operators whose outputs have names.
OUTPUTS = {
    "BatchNorm": ("output", "mean", "var"), "BatchNorm_v1": ("output", "mean", "var"), "BilinearSampler": ("output", "tmp"),
    "Dropout": ("output", "mask"),
    "_contrib_BatchNormWithReLU": ("output", "mean", "var"), "_contrib_SyncBatchNorm": ("output", "mean", "var"),
    "_contrib_hawkesll": ("output", "out_state"),
    "GridGenerator": ("output", "grid_dst"), "GroupNorm": ("output", "mean", "std"), "InstanceNorm": ("output", "mean", "var"),
    "L2Normalization": ("output", "norm"), "LRN": ("output", "tmp_norm"), "LayerNorm": ("output", "mean", "std"),
    "LeakyReLU": ("output", "mask"), "Pooling": ("output", "workspace"), "RNN": ("output", "state_output", "statecell_output"),
    "Correlation": ("output", "tmp1", "tmp2"), "ROIPooling": ("output", "maxidx"),
    "SpatialTransformer": ("output", "grid_dst", "grid_src"), "_contrib_DeformablePSROIPooling": ("output", "top_count"),
    "_contrib_MultiBoxTarget": ("loc_target", "loc_mask", "cls_target"), "_contrib_MultiProposal": ("output", "score"),
    "_contrib_Proposal": ("output", "score"), "make_loss": ("loss",),
}  # fmt: skip

# How many outputs MXNet counts, those that nobody sees included, where that differs from ours.
COUNTS = {
    "BatchNorm": 3, "BatchNorm_v1": 3, "BilinearSampler": 2, "CTCLoss": 2, "Correlation": 3,
    "Dropout": 2, "GridGenerator": 2, "GroupNorm": 3,
    "InstanceNorm": 3, "L2Normalization": 2, "LRN": 2, "LayerNorm": 3, "ROIPooling": 2, "SpatialTransformer": 3,
    "_contrib_BatchNormWithReLU": 4, "_contrib_DeformablePSROIPooling": 2, "_contrib_MultiProposal": 2, "_contrib_Proposal": 2,
    "_contrib_SyncBatchNorm": 3, "_contrib_box_nms": 2,
    "_linalg_slogdet": 4,
    "sort": 2,
}  # fmt: skip


def stored_outputs(op: Op | None) -> int:
    """How many outputs MXNet counts for a node of `op` in its files."""
    if op is None:
        return 1
    if op.name == "Pooling":  # oneDNN keeps the places of the maxima beside them, for arrays whose channels come first
        return 2 if getattr(op, "pool_type", "") == "max" and not str(getattr(op, "layout", None) or "NC").endswith("C") else 1
    if op.name == "topk":
        return 2 if getattr(op, "ret_typ", "") in ("value", "both") else 1
    return COUNTS.get(op.name, op.num_visible)


def output_name(op: Op | None, name: str, index: int) -> str:
    """The name of output `index` of the node `name`. A variable, which has no operator, gives its own name to its output."""
    if op is None:
        return name
    named = OUTPUTS.get(op.name, getattr(op, "output_names", None))
    if named is not None and index < len(named):
        return f"{name}_{named[index]}"
    return f"{name}_output{index}" if stored_outputs(op) > 1 or op.name == "SliceChannel" else f"{name}_output"


# A monitor of all values calls inputs `<node>_data`, `<node>_weight`; the only input of most operators `<node>_input0`.
SINGLE_DATA = frozenset({
    "Dropout", "L2Normalization", "LRN", "LeakyReLU", "Pad", "Pooling", "SliceChannel", "SwapAxis", "log_softmax", "softmax", "softmin",
})  # fmt: skip


def input_label(op: Op, name: str, index: int) -> str:
    """What a monitor calls input `index` of the node `name`."""
    if op.inputs == ("data",) and op.name not in SINGLE_DATA:
        return f"{name}_input0"
    if op.inputs[-1].endswith("*") and index >= len(op.inputs) - 1:
        return f"{name}_arg{index - len(op.inputs) + 1}"
    return f"{name}_{op.inputs[index].rstrip('?')}"


# ---- attributes of nodes: `lr_mult` and the others of NODE_KEYS are stored as `__lr_mult__`, and can be asked for by either name


def stored_key(key: str) -> str:
    """The key under which an attribute is stored. Raises ArgumentError for the old form that addressed a node's input."""
    if key in NODE_KEYS:
        return f"__{key}__"
    for plain in NODE_KEYS:
        if key.endswith(f"_{plain}"):
            owner = key[: -len(plain) - 1]
            raise ArgumentError(
                f"attribute {key!r} belongs to the input {owner!r}: pass {owner}=mx.sym.var('{owner}', {plain}=...)"
            )
    return key


def listed(attrs: dict[str, str]) -> dict[str, str]:
    """Attributes as `list_attr` shows them: `__lr_mult__` as `lr_mult`, too."""
    plain = {key[2:-2]: text for key, text in attrs.items() if key[2:-2] in NODE_KEYS and key.startswith("__")}
    return {**attrs, **plain}


# MXNet writes the attributes that a call gives. Which of ours were given nobody knows any more when the node is made, so those are written
# that differ from their defaults; and here are those that MXNet's layers (Gluon) give all the same. Most layers call their node `fwd`.
SPELT_OUT_BY_LAYERS = {
    "BatchNorm": ("axis", "eps", "fix_gamma", "momentum", "use_global_stats"),
    "_contrib_BatchNormWithReLU": ("axis", "eps", "fix_gamma", "momentum", "use_global_stats"),
    "_contrib_SyncBatchNorm": ("eps", "fix_gamma", "key", "momentum", "ndev", "use_global_stats"),
    "Convolution": ("dilate", "kernel", "layout", "no_bias", "num_filter", "num_group", "pad", "stride"),
    "Deconvolution": ("adj", "dilate", "kernel", "layout", "no_bias", "num_filter", "num_group", "pad", "stride"),
    "Dropout": ("axes", "cudnn_off", "p"),
    "Embedding": ("dtype", "input_dim", "output_dim", "sparse_grad"),
    "FullyConnected": ("flatten", "no_bias", "num_hidden"),
    "InstanceNorm": ("eps",),
    "LeakyReLU": ("act_type", "slope"),
    "Pooling": ("global_pool", "kernel", "layout", "pad", "pool_type", "pooling_convention", "stride"),
}  # fmt: skip
SPELT_OUT = {
    "CTCLoss": ("blank_label", "use_data_lengths", "use_label_lengths"),
    "Concat": ("dim",),
    "GroupNorm": ("eps", "num_groups"),
    "LayerNorm": ("axis", "eps"),
    "RNN": (
        "bidirectional", "lstm_state_clip_max", "lstm_state_clip_min", "lstm_state_clip_nan", "mode", "num_layers", "p", "projection_size",
        "state_outputs", "state_size", "use_sequence_length",
    ),
    "SwapAxis": ("dim1", "dim2"),
}  # fmt: skip


def attr_text(value: Any) -> str:
    """A value of an attribute as MXNet writes it."""
    return value.name if isinstance(value, np.dtype) else str(value)


def written_attrs(op: Op, operands: int, called: str | None = None) -> dict[str, str]:
    """The attributes of a node that a function made, which was told to call it `called`."""
    values = {spelt(field): getattr(op, field.name) for field in dataclasses.fields(op)}
    always = SPELT_OUT_BY_LAYERS.get(op.name, ()) if called == "fwd" else SPELT_OUT.get(op.name, ())
    attrs = {key: attr_text(values[key]) for key in always if values.get(key) is not None or op.name == "RNN"}
    if op.name == "LeakyReLU" and values["act_type"] != "leaky":
        attrs.pop("slope", None)  # PReLU learns it
    attrs.update(op.attrs())
    if op.name == "Reshape" and attrs.get("shape") == "(-1,)":
        attrs["shape"] = "-1"  # as it mostly was given, by recurrent layers always
    for key in ("axis", "output_size" if op.name == "_contrib_AdaptiveAvgPooling2D" else "axis"):
        value = values.get(key)
        if isinstance(value, tuple) and len(value) == 1:
            attrs[key] = str(value[0])  # as it mostly was given: mean(axis=0)
    if op.inputs and op.inputs[-1].endswith("*") and "num_outputs" not in attrs:
        attrs["num_args"] = str(operands)  # MXNet cannot read the node without it
    return attrs


#: What operators call inputs that are parameters.
PARAMETERS = ("weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters")

# Variables that are made for missing inputs say how they are to be initialized, where it is not as the name suggests.
INITIALIZERS = {
    ("BatchNorm", "moving_mean"): '["zero", {}]',
    ("BatchNorm", "moving_var"): '["one", {}]',
    ("_contrib_BatchNormWithReLU", "moving_mean"): '["zero", {}]',
    ("_contrib_BatchNormWithReLU", "moving_var"): '["one", {}]',
    ("_contrib_SyncBatchNorm", "moving_mean"): '["zero", {}]',
    ("_contrib_SyncBatchNorm", "moving_var"): '["one", {}]',
    ("BatchNorm_v1", "moving_mean"): '["zero", {}]',
    ("BatchNorm_v1", "moving_var"): '["one", {}]',
    ("IdentityAttachKLSparseReg", "moving_avg"): '["zero", {}]',
    ("LeakyReLU", "gamma"): '["Constant", {"value": 0.25}]',
    ("UpSampling", "weight"): '["bilinear", {}]',
}


def operator_attrs(attrs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those of `attrs` that are the operator's own."""
    return {key: text for key, text in attrs if not (key.startswith("__") and key.endswith("__"))}


def require_strings(attrs: dict[str, Any]) -> None:
    """Raise ArgumentError unless all values are strings."""
    for key, value in attrs.items():
        if not isinstance(value, str):
            raise ArgumentError(f"attribute {key}={value!r}: a string is wanted")


def in_node(name: str, error: MXNetError) -> MXNetError:
    """The error of an operator's rule, with the node that it was met in."""
    located = type(error)(f"Error in operator {name}: {error}")
    located.node = name
    return located


# MXNet has no gradient for these, and refuses to bind a graph that would need one.
NO_GRADIENT = frozenset({"batch_take"})
