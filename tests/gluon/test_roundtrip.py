"""Networks that MXNet 1.9.1 has loaded from minimx's files and run: minimx still writes those files, and computes what MXNet did."""

from __future__ import annotations

import json

import pytest

from minimx import gluon

from .. import roundtrip_mxnet

RECORD = json.loads(roundtrip_mxnet.RECORD.read_text())["networks"]


@pytest.mark.parametrize("name", roundtrip_mxnet.NETWORKS)
def test_the_files_that_mxnet_has_read(name, tmp_path):
    entry = RECORD[name]
    net = roundtrip_mxnet.made(name)
    files = net.export(str(tmp_path / name))
    assert entry["same_text"]
    assert roundtrip_mxnet.checksum(files[0]) == entry["symbol_sha256"]
    assert roundtrip_mxnet.checksum(files[1]) == entry["params_sha256"]
    inputs = ["data"] if len(roundtrip_mxnet.NETWORKS[name][1]) == 1 else ["data0", "data1"]
    imported = gluon.SymbolBlock.imports(files[0], inputs, files[1])
    eager = roundtrip_mxnet.made(name)
    eager.hybridize(False)
    for each in (net, imported, eager):
        assert roundtrip_mxnet.difference(roundtrip_mxnet.outputs_of(each, name), entry["outputs"]) <= roundtrip_mxnet.TOLERANCE
        moved = roundtrip_mxnet.outputs_after_training(each, name)
        assert roundtrip_mxnet.difference(moved, entry["after_training"]) <= roundtrip_mxnet.TOLERANCE
