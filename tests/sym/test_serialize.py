"""Graphs as MXNet's JSON: byte for byte what MXNet 1.9.1 writes, and whatever it has written since 0.8 can be read."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from minimx import nd, sym
from minimx.base import ArgumentError, FileFormatError, FolderError, MissingFileError, MXNetError
from minimx.compat.names import record
from minimx.name import NameManager
from minimx.op import REGISTRY
from minimx.sym import unknown

GOLDEN = sorted((pathlib.Path(__file__).parent / "golden").glob("*-symbol.json"))  # exported by MXNet 1.9.1


def dense(**how: Any) -> Any:
    return sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc", **how)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.partition("-")[0])
def test_mxnets_files_are_read_and_written_byte_for_byte(path: pathlib.Path) -> None:
    text = path.read_text()
    missing = {node["op"] for node in json.loads(text)["nodes"]} - REGISTRY.keys() - {"null"}
    if missing:
        pytest.skip(f"without {', '.join(sorted(missing))}")
    assert sym.load(str(path)).tojson() == text


WRITTEN = """{
  "nodes": [
    {
      "op": "null",
      "name": "data",
      "inputs": []
    },
    {
      "op": "null",
      "name": "fc_weight",
      "attrs": {
        "no_bias": "True",
        "num_hidden": "4"
      },
      "inputs": []
    },
    {
      "op": "FullyConnected",
      "name": "fc",
      "attrs": {
        "no_bias": "True",
        "num_hidden": "4"
      },
      "inputs": [[0, 0, 0], [1, 0, 0]]
    },
    {
      "op": "null",
      "name": "x",
      "attrs": {"__shape__": "(0, 2)"},
      "inputs": []
    },
    {
      "op": "_mul_scalar",
      "name": "_mulscalar0",
      "attrs": {"scalar": "2.5"},
      "inputs": [[3, 0, 0]]
    },
    {
      "op": "Concat",
      "name": "concat0",
      "attrs": {
        "dim": "-1",
        "num_args": "2"
      },
      "inputs": [[2, 0, 0], [4, 0, 0]]
    }
  ],
  "arg_nodes": [0, 1, 3],
  "node_row_ptr": [0, 1, 2, 3, 4, 5, 6],
  "heads": [[5, 0, 0]],
  "attrs": {"mxnet_version": ["int", 10901]}
}"""


def test_what_is_written() -> None:
    with NameManager():
        net = sym.concat(dense(no_bias=True), sym.var("x", shape=(0, 2)) * 2.5, dim=-1)
    assert net.tojson().replace(", \n", ",\n") == WRITTEN  # a blank follows each comma in MXNet's lines, as the files above show


def test_long_lists_are_broken_into_lines() -> None:
    text = sym.add_n(*[sym.var(f"x{i}") for i in range(11)]).tojson()
    assert '"inputs": [\n        [0, 0, 0], \n        [1, 0, 0],' in text
    assert '"arg_nodes": [\n    0, \n    1,' in text
    assert json.loads(text)["nodes"][-1]["attrs"] == {"num_args": "11"}


def test_outputs_that_nobody_sees_are_counted_as_mxnet_does() -> None:
    x = sym.var("x")
    for net, count in (
        (sym.Dropout(x), 2), (sym.LayerNorm(x), 3), (sym.sort(x), 2), (sym.topk(x), 1), (sym.topk(x, ret_typ="value"), 2),
        (sym.split(x, num_outputs=3), 3), (sym.linalg.slogdet(x), 4), (sym.L2Normalization(x), 2), (x + 1, 1),
    ):  # fmt: skip
        rows = json.loads(net.tojson())["node_row_ptr"]
        assert rows[-1] - rows[-2] == count, net


@pytest.mark.parametrize(
    "make",
    [
        lambda x: sym.transpose(x, axes=(1, 0)),
        lambda x: sym.slice(x, begin=(None, 1), end=(2, None)),
        lambda x: sym.Cast(x, dtype="float16"),
        lambda x: sym.split(x, num_outputs=2, axis=0, squeeze_axis=True),
        lambda x: sym.sum(x, axis=(0, 1), keepdims=True),
        lambda x: sym.softmax(x, temperature=2.0),
        lambda x: sym.softmax(x, use_length=True),
        lambda x: sym.clip(x, 0, 0.5),
        lambda x: sym.LeakyReLU(x, act_type="prelu"),
        lambda x: sym.one_hot(x, 3, dtype="int32"),
        lambda x: sym.topk(x, k=2, ret_typ="both", dtype="int64"),
        lambda x: x > 1e-7,
        lambda x: sym.Group([sym.random.normal(0, 2, shape=(2,)), sym.arange(0, 3, 0.5), sym.full((2,), 3)]),
        lambda x: sym.Embedding(x, input_dim=5, output_dim=2),
        lambda x: sym.SequenceMask(x, use_sequence_length=True, value=-1),
        lambda x: sym.stack(x, x, axis=1),
    ],
)
def test_operators_come_back_as_they_were(make: Any) -> None:
    net = make(sym.var("x"))
    back = sym.load_json(net.tojson())
    assert back.tojson() == net.tojson()
    assert back.list_outputs() == net.list_outputs()
    assert back.list_arguments() == net.list_arguments()
    assert [node.op for node, _ in back.entries] == [node.op for node, _ in net.entries]


def test_shared_nodes_stay_shared() -> None:
    x = sym.var("x")
    shared = sym.exp(x)
    back = sym.load_json(sym.Group([shared * shared, shared + 1, x]).tojson())
    assert back.list_arguments() == ["x"]
    assert len(back.get_internals()) == 4
    assert [out.asnumpy().tolist() for out in back.eval(x=nd.zeros((1,)))] == [[1.0], [2.0], [0.0]]


@settings(deadline=None, max_examples=50)
@given(
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8"))),
)
def test_any_text_survives(name: str, extra: dict[str, str]) -> None:
    attrs = {f"__{key}__": value for key, value in extra.items()}
    net = sym.exp(sym.var(name, attr=attrs), name="e")
    back = sym.loads(net.tojson())
    assert back.list_arguments() == [name]
    assert back.attr_dict() == net.attr_dict()
    assert back.tojson() == net.tojson()


# ---- casts of automatic mixed precision


def test_casts_are_left_out_unless_asked_for() -> None:
    x = sym.var("x")
    half = sym.amp_cast(x, dtype="float16")
    pair = sym.amp_multicast(half, sym.var("y"), num_outputs=2)
    net = sym.elemwise_add(pair[1], pair[0], name="sum")
    assert [node["op"] for node in json.loads(net.tojson())["nodes"]] == ["null", "null", "elemwise_add"]
    assert sym.loads(net.tojson()).list_arguments() == ["y", "x"]
    kept = [node["op"] for node in json.loads(net.tojson(remove_amp_cast=False))["nodes"]]
    assert kept == ["null", "amp_cast", "null", "amp_multicast", "elemwise_add"]
    assert sym.loads(half.tojson()).list_outputs() == ["x"]


# ---- files


def test_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net-symbol.json"
    path.write_text("before")
    dense().save(str(path))
    assert sym.load(str(path)).tojson() == dense().tojson() == path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # nothing is left beside it


def test_a_file_that_cannot_be_written_is_left_as_it_was(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.json"
    path.write_text("before")
    monkeypatch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(OSError, match="disk full"):
        dense().save(str(path))
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "no JSON"),
        ("[]", "no graph of MXNet"),
        ("{}", "no graph of MXNet: there is no 'nodes' in the graph, wants a list"),
        ('{"nodes": [], "heads": [[0, 0, 0]]}', "no graph of MXNet: head 0 is node 0; it must be one of the 0 nodes"),
        (
            '{"nodes": [{"op": "nope", "name": "x", "inputs": []}], "heads": [[0, 0, 0]]}',
            r"load_json: the graph has operators that are not here: nope \(node x\)\. No network of MXNet",
        ),
        ('{"nodes": [{"op": "exp", "name": "x", "attrs": {"far": "1"}, "inputs": []}], "heads": [[0, 0, 0]]}', "unknown argument 'far'"),
        ('{"nodes": [{"op": "Cast", "name": "x", "attrs": {"dtype": "float13"}, "inputs": []}], "heads": [[0, 0, 0]]}', "dtype='float13'"),
        (
            '{"nodes": [{"op": "null", "name": "x", "inputs": []}, '
            '{"op": "exp", "name": "y", "inputs": [[0, 0, 0], [0, 0, 0]]}], "heads": [[1, 0]]}',
            "2 inputs",
        ),
    ],
)  # fmt: skip
def test_texts_that_are_no_graphs(text: str, match: str) -> None:
    with pytest.raises(MXNetError, match=match):
        sym.load_json(text)


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        (("heads", 0), [99, 0, 0], "head 0 is node 99; it must be one of the 4"), (("heads", 0), [-1, 0, 0], "head 0 is node -1"),
        (("heads", 0), [3, 5, 0], "head 0 is output 5 of node fc, which has 1"), (("heads", 0), [3, -1, 0], "output -1 of node fc"),
        (("heads",), [], "'heads' is empty"), (("heads",), None, "'heads' is None in the graph, wants a list"),
        (("nodes",), {}, "'nodes' is a dict"), (("nodes", 3), 5, "node 3 is 5, wants an object"),
        (("nodes", 3, "inputs", 1), [77, 0, 0], r"input 1 of node 3 \('fc'\) is node 77; it must be one of the 3 nodes before it"),
        (("nodes", 3, "inputs", 1), [3, 0, 0], "is node 3; it must"),
        (("nodes", 3, "inputs", 1), [1, 9, 0], "output 9 of node fc_weight"),
        (("nodes", 3, "inputs", 1), [1.5, 0, 0], "wants the numbers"), (("nodes", 3, "inputs", 1), "10", "is '10', wants the numbers"),
        (("nodes", 3, "inputs", 1), [True, False, 0], "wants the numbers"),
        (("nodes", 3, "inputs", 1), [10**400, 0, 0], r"is node 1000.*\.\.\."),
        (("nodes", 0, "inputs"), [[0, 0, 0]], "is node 0; it must"), (("nodes", 1, "inputs"), [[0, 0, 0]], "is a variable, and has inputs"),
        (("nodes", 3, "name"), 5, "'name' is 5 in node 3, wants a string"), (("nodes", 3, "op"), ["x"], r"'op' is \['x'\] in node 3"),
        (("nodes", 3, "attrs"), ["x"], "wants an object"), (("nodes", 3, "attrs"), None, "'attrs' is None in node 3"),
        (("nodes", 3, "attrs", "num_hidden"), 3, r"attribute 'num_hidden' of node 3 \('fc'\) is 3, wants a string"),
        (("nodes", 3, "attrs", "num_hidden"), "three", "in operator fc: FullyConnected: argument num_hidden='three' is not an int$"),
        (("nodes", 3, "attrs", "num_hidden"), "9" * 5000, r"num_hidden='999+\.\.\.9+' is not an int$"),
        (("nodes", 3, "attrs", "num_hidden"), "99999999999999999999", "num_hidden='9+' is not an int$"),
        (("attrs", "mxnet_version"), "x", "'mxnet_version' is 'x'"), (("attrs", "mxnet_version"), ["int", "9"], "'mxnet_version' is"),
        (("attrs",), [], r"'attrs' is \[\] in the graph"),
    ],
)  # fmt: skip
def test_damaged_graphs_are_named(place: tuple[Any, ...], value: Any, match: str) -> None:
    graph = json.loads(dense().tojson())
    found = graph
    for key in place[:-1]:
        found = found[key]
    found[place[-1]] = value
    with pytest.raises(MXNetError, match=match):
        sym.load_json(json.dumps(graph))
    if value is None:
        del found[place[-1]]
        if place[-1] == "heads":
            with pytest.raises(FileFormatError, match="there is no 'heads' in the graph"):
                sym.load_json(json.dumps(graph))


def test_damage_in_a_subgraph_is_named() -> None:
    loop = sym.contrib.foreach(lambda row, state: (row, state + row), sym.var("x"), sym.var("s"), name="loop")[0]
    graph = json.loads(loop.tojson())
    [node] = [node for node in graph["nodes"] if node["op"] == "_foreach"]
    node["subgraphs"][0]["heads"][0] = [99, 0, 0]
    with pytest.raises(FileFormatError, match=f"in operator {node['name']}: head 0 is node 99"):
        sym.load_json(json.dumps(graph))
    node["subgraphs"] = [5]
    with pytest.raises(FileFormatError, match="the graph is 5, wants an object"):
        sym.load_json(json.dumps(graph))


@pytest.mark.parametrize(
    ("key", "text", "match"),
    [
        ("__shape__", "-" * 9000 + "1", "__shape__='---"), ("__shape__", "('a',)", "tuple of int|is no shape"),
        ("__dtype__", "77", r"0 \(float32\)"),
        ("__dtype__", "9" * 5000, r"__dtype__='9+\.\.\.9+'"),
    ],
)  # fmt: skip
def test_odd_declarations_of_variables(key: str, text: str, match: str) -> None:
    net = sym.load_json(
        json.dumps({"nodes": [{"op": "null", "name": "x", "attrs": {key: text}, "inputs": []}], "heads": [[0, 0, 0]]})
    )
    with pytest.raises(MXNetError, match=match):
        (net.infer_shape if key == "__shape__" else net.infer_type)()


def test_any_change_of_one_character_is_read_or_refused() -> None:
    text = (dense() * sym.var("b", shape=(1, 4))).tojson()
    rng = np.random.default_rng(4)
    for _ in range(400):
        place, kind = int(rng.integers(len(text))), int(rng.integers(3))
        middle = ["", str(rng.choice(list('0123456789"{}[],:-.eN \\'))), text[place : place + 30]][kind]
        damaged = text[:place] + middle + text[place + (kind != 2) :]
        try:
            net = sym.load_json(damaged)
            net.infer_shape_partial()
            net.tojson()
        except MXNetError:
            pass


def test_long_chains_take_linear_time() -> None:
    net = sym.var("x")
    for number in range(10_000):
        net = net + 1 if number % 2 else sym.tanh(net)
    assert sym.load_json(net.tojson()).infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert nd.CachedOp(net)(nd.zeros((2, 3))).shape == (2, 3)


def test_wrong_arguments(tmp_path: pathlib.Path) -> None:
    for call in (lambda: sym.load_json(3), lambda: sym.load(3), lambda: dense().save(3)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(MissingFileError, match=r"there is no file .*absent\.json"):
        sym.load(str(tmp_path / "absent.json"))
    with pytest.raises(FolderError, match="it is a folder"):
        sym.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"{\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="binary is no text: byte 1 is no UTF-8"):
        sym.load(str(tmp_path / "binary"))
    with pytest.raises(MXNetError, match="cannot be written as UTF-8; rename it"):
        (sym.var("odd\ud800") * 2).save(str(tmp_path / "odd.json"))


# ---- older files

FIRST = """{"nodes": [
 {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1, "attr": {"ctx_group": "one", "lr_mult": "0.2"}},
 {"op": "null", "param": {}, "name": "w", "inputs": [], "backward_source_id": -1},
 {"op": "null", "param": {}, "name": "b", "inputs": [], "backward_source_id": -1},
 {"op": "FullyConnected", "param": {"no_bias": "False", "num_hidden": "8"}, "name": "fc", "inputs": [[0, 0], [1, 0], [2, 0]],
  "backward_source_id": -1, "attr": {"ctx_group": "one", "weight_lr_mult": "1.2"}},
 {"op": "LeakyReLU", "param": {"act_type": "prelu"}, "name": "act", "inputs": [[3, 0]], "backward_source_id": -1},
 {"op": "argmax", "param": {"axis": "-1"}, "name": "top", "inputs": [[4, 0]], "backward_source_id": -1}
], "arg_nodes": [0, 1, 2], "heads": [[5, 0]]}"""


def test_files_of_version_0_8() -> None:
    net = sym.load_json(FIRST)
    assert net.list_arguments() == ["data", "w", "b", "act_gamma"]  # what was not written then is made now
    attrs = net.attr_dict()
    assert attrs["data"]["__lr_mult__"] == "0.2"
    assert attrs["w"] == {"__lr_mult__": "1.2", "lr_mult": "1.2"}  # an attribute of the layer that was meant for its input
    assert attrs["fc"].items() >= {"__ctx_group__": "one", "num_hidden": "8"}.items()
    assert net.list_attr() == {}  # axis -1 meant all axes
    assert net.infer_shape(data=(2, 3))[1] == [(1,)]


def test_files_before_1_0_call_attributes_attr() -> None:
    text = """{"nodes": [
     {"op": "null", "name": "data", "inputs": [], "attr": {"__lr_mult__": "0.2", "wd_mult": "3"}},
     {"op": "null", "name": "w", "inputs": []},
     {"op": "FullyConnected", "name": "fc", "inputs": [[0, 0, 0], [1, 0, 0]],
      "attr": {"no_bias": "True", "num_hidden": "8", "lr_mult": "2", "__ctx_group__": "a"}},
     {"op": "_Plus", "name": "p", "inputs": [[2, 0, 0], [2, 0, 0]]}
    ], "arg_nodes": [0, 1], "heads": [[3, 0, 0]], "attrs": {"mxnet_version": ["int", 901]}}"""
    net = sym.load_json(text)
    assert json.loads(net.tojson())["nodes"][-1]["op"] == "elemwise_add"  # under its present name
    assert net.attr_dict() == {
        "data": {"__lr_mult__": "0.2", "lr_mult": "0.2", "__wd_mult__": "3", "wd_mult": "3"},
        "fc": {"no_bias": "True", "num_hidden": "8", "__lr_mult__": "2", "lr_mult": "2", "__ctx_group__": "a", "ctx_group": "a"},
    }


def test_hints_for_other_libraries_are_kept_and_ignored() -> None:
    text = dense().tojson().replace('"num_hidden": "4"', '"num_hidden": "4", "workspace": "1024"')
    net = sym.load_json(text)
    assert net.attr("workspace") == "1024"
    assert net.infer_shape(data=(2, 3))[1] == [(2, 4)]


# ---- in words


def test_debug_str() -> None:
    assert sym.exp(sym.var("x"), name="e").debug_str() == (
        "Symbol Outputs:\n\toutput[0]=e(0)\nVariable:x\n--------------------\nOp:exp, Name=e\nInputs:\n\targ[0]=x(0) version=0\n"
    )
    assert "Attrs:\n\tnum_hidden=4\n" in dense().debug_str()


def test_a_graph_computes_the_same_after_a_round_trip() -> None:
    net = sym.softmax(sym.Activation(dense(), act_type="tanh") * 3)
    given = {"data": nd.ones((2, 3)), "fc_weight": nd.array(np.arange(12).reshape(4, 3) / 10), "fc_bias": nd.zeros((4,))}
    once = net.eval(**given)[0].asnumpy()
    np.testing.assert_array_equal(sym.load_json(net.tojson()).eval(**given)[0].asnumpy(), once)


def graph_of(*ops: str) -> str:
    """A chain of operators as JSON; the last is inside of a loop."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "data", "inputs": []}]
    nodes += [{"op": op, "name": f"n{place}", "inputs": [[place, 0, 0]]} for place, op in enumerate(ops[:-1])]
    inner = {"nodes": [{"op": ops[-1], "name": "inner", "inputs": []}], "heads": [[0, 0, 0]]}
    nodes.append({"op": "_foreach", "name": "loop", "inputs": [[0, 0, 0]], "subgraphs": [inner]})
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[len(nodes) - 1, 0, 0]]})


def test_operators_that_are_not_here_are_named_with_the_reason(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net-symbol.json").write_text(graph_of("relu", "_contrib_quantize_v2", "_contrib_quantized_conv"))
    with pytest.raises(ArgumentError) as caught:
        sym.load(tmp_path / "net-symbol.json")
    text = str(caught.value)
    assert "net-symbol.json: the graph has operators that are not here: _contrib_quantize_v2 (node n1), " in text
    assert (
        "_contrib_quantized_conv (node inner). Operators on 8-bit integers are not planned: export the network as it was" in text
    )
    assert text.count("8-bit") == 1
    with pytest.raises(ArgumentError, match="A backend of MXNet has made it of several operators: export"):
        sym.load_json(graph_of("relu", "_sg_mkldnn_conv"))
    with pytest.raises(ArgumentError, match=r"It belongs to MXNet's interface of NumPy \(mx\.np\)"):
        sym.load_json(graph_of("_npi_add", "_npx_relu"))
    with pytest.raises(ArgumentError, match=r"a3 \(node n3\), a4 \(node n4\), 2 more\. No network"):
        sym.load_json(graph_of("a0", "a1", "a2", "a3", "a4", "a5", "a6"))


def test_every_operator_of_mxnet_that_is_not_here_has_a_reason() -> None:
    """But for those of MXNet's own front end, of which no network is made."""
    names = [path.partition(".")[2] for path in record() if path.startswith("operators.")]
    absent = {name for name in names if name not in REGISTRY}
    assert len(absent) > 30
    without = {name for name in absent if unknown.reason(name) == unknown.OTHERWISE}
    assert without == {
        "_CrossDeviceCopy", "_CustomFunction", "_NDArray", "_Native", "_copyto", "_cvimdecode", "_cvimread", "_imdecode",
        "_onehot_encode", "_set_value", "_split_v2_backward",
    }  # fmt: skip
