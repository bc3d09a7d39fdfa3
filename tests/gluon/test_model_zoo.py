"""The networks of the zoo are those of MXNet 1.9.1: names, shapes and order of parameters, graphs, and what they compute."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zipfile

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon
from minimx.base import FileFormatError, MissingFileError
from minimx.gluon.model_zoo import model_store, vision

from . import model_zoo_facts as facts

#: Number of elements of all parameters, checksum of the parameters, checksum of the graph; written by model_zoo_facts.py with MXNet.
STRUCTURE = {
    "alexnet": (61100840, "89045943719b", "3b934d260970"),
    "densenet121": (8062504, "fe932a9b1a20", "2331ff429801"),
    "densenet161": (28900936, "fd931cdfd179", "97c1b5bdbf59"),
    "densenet169": (14307880, "648e024d2f2e", "4ceeb619dd51"),
    "densenet201": (20242984, "f3b517196eb2", "920b056d3d20"),
    "inceptionv3": (23869000, "474b3dd52eb9", "7a5867f3cf7f"),
    "mobilenet0.25": (475544, "b1119d957d9e", "ed28c8adbea7"),
    "mobilenet0.5": (1342536, "61ceb5e38be6", "4bf409339651"),
    "mobilenet0.75": (2601976, "4eb18859659a", "323d4eee46dc"),
    "mobilenet1.0": (4253864, "831d174cf728", "09feda595392"),
    "mobilenetv2_0.25": (1526856, "67b99b905803", "7cdf9ea93a02"),
    "mobilenetv2_0.5": (1983104, "585fe79f7edb", "54f3a04cc074"),
    "mobilenetv2_0.75": (2653864, "c2727074f13b", "0fc51c9bd397"),
    "mobilenetv2_1.0": (3539136, "d65830113fba", "2d96f584b165"),
    "resnet101_v1": (44695144, "b17b861178fc", "88bf1f843472"),
    "resnet101_v2": (44639412, "cfb73e5f006c", "c4f7073b8deb"),
    "resnet152_v1": (60404072, "cac4443f0daa", "cfba244dd44b"),
    "resnet152_v2": (60329140, "2068d3702f18", "6367696bd361"),
    "resnet18_v1": (11699112, "a5165ce4c222", "122550444ea5"),
    "resnet18_v2": (11695796, "f9818e4e3c50", "85eec720fd22"),
    "resnet34_v1": (21814696, "e0c4c8051118", "5f4b0633b5e3"),
    "resnet34_v2": (21811380, "73eecf453cd9", "9177a2024613"),
    "resnet50_v1": (25629032, "b47fc55af93d", "c72355694385"),
    "resnet50_v2": (25595060, "cc9bd05a3b2f", "1cae7e98c09f"),
    "squeezenet1.0": (1248424, "dc355ad2bbfe", "494483c8dad5"),
    "squeezenet1.1": (1235496, "beac58143f6e", "93699cf08dd5"),
    "vgg11": (132863336, "9fff951379de", "1cd62d565298"),
    "vgg11_bn": (132874344, "4e18082327bf", "6cb7a52448ed"),
    "vgg13": (133047848, "5e9e049c861d", "f83b75f28cc7"),
    "vgg13_bn": (133059624, "769b9922990f", "ab4b31975031"),
    "vgg16": (138357544, "34a83b991938", "921ef01e501b"),
    "vgg16_bn": (138374440, "a9291b33f2b4", "dcf0c5479cbb"),
    "vgg19": (143667240, "9dc9fb647f4b", "6fadc217a9bd"),
    "vgg19_bn": (143689256, "c42d3fcc090d", "967cc588755e"),
}

#: What MXNet computed for an image, in inference.
SCORES = {
    "alexnet": [-0.9398, 1.2034, -1.1757, -0.033878],
    "vgg11": [-0.54127, -0.80484, 0.12212, 2.0571],
    "vgg11_bn": [-3.029, -6.021, -1.7648, 2.7482],
    "squeezenet1.1": [0, 0, 1.6169, 0.60721],
    "densenet121": [3.8734, 2.4891, -0.055631, 2.1234],
    "inceptionv3": [4.4018, 9.9632, -11.436, -2.883],
    "mobilenet0.25": [-0.87239, 0.91553, 1.9637, -1.9261],
    "mobilenetv2_0.25": [-0.40569, 1.1244, 3.4016, -0.80432],
    "resnet18_v1": [6.1849, 26.745, 13.777, -11.201],
    "resnet50_v1": [870.24, -1233.5, -1329, 1403.1],
    "resnet18_v2": [-16.451, 10.496, -13.993, -13.705],
    "resnet50_v2": [733.2, -585.94, -634.78, -839.82],
}  # fmt: skip

SMALL = "mobilenetv2_0.25"


@pytest.mark.parametrize("name", STRUCTURE)
def test_parameters_and_graph_are_those_of_mxnet(name):
    assert facts.structure(mx, name) == STRUCTURE[name]


def test_every_network_of_mxnet_is_there():
    assert set(vision._MODELS) == set(STRUCTURE) == set(model_store._model_sha1)
    assert facts.checksum(model_store._model_sha1) == "60511a083f2b"


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_mxnet_hybridized_or_not(name):
    net, data = facts.model(mx, name)
    expected = np.array([SCORES[name]])
    close = {"rtol": 2e-4, "atol": 2e-5 * np.abs(expected).max()}  # five digits are recorded; sums are in another order
    np.testing.assert_allclose(net(data).asnumpy(), expected, **close)
    net.hybridize()
    np.testing.assert_allclose(net(data).asnumpy(), expected, **close)


SMALL_NETWORKS = {
    "mobilenet": lambda: vision.MobileNet(0.25, classes=3),
    "mobilenet v2": lambda: vision.MobileNetV2(0.25, classes=3),
    "densenet": lambda: vision.DenseNet(8, 4, [2, 3], classes=3),
    "resnet": lambda: vision.ResNetV1(vision.BasicBlockV1, [2, 2], [8, 8, 16], classes=3),
    "resnet with bottlenecks": lambda: vision.ResNetV1(vision.BottleneckV1, [2, 2], [8, 16, 32], classes=3, thumbnail=True),
    "resnet v2": lambda: vision.ResNetV2(vision.BasicBlockV2, [2, 2], [8, 8, 16], classes=3, thumbnail=True),
    "resnet v2 with bottlenecks": lambda: vision.ResNetV2(vision.BottleneckV2, [2, 2], [8, 16, 32], classes=3),
}


@pytest.mark.parametrize("kind", SMALL_NETWORKS)
def test_training_hybridized_or_not(kind):
    def results(hybridized):
        net, data = facts.filled(mx, SMALL_NETWORKS[kind](), 64 if kind == "densenet" else 40, number=2)
        net.cast("float64")
        if hybridized:
            net.hybridize()
        with autograd.record():
            scores = net(data.astype("float64"))
            loss = (scores * scores).mean()
        loss.backward()
        params = net._collect_params_with_prefix()
        changed = {place: param.grad() if param.grad_req == "write" else param.data() for place, param in params.items()}
        return {"scores": scores.asnumpy(), **{place: array.asnumpy() for place, array in changed.items()}}

    eager, graph = results(False), results(True)
    assert eager.keys() == graph.keys()
    for place, value in eager.items():
        np.testing.assert_allclose(graph[place], value, rtol=1e-6, atol=1e-9 * max(np.abs(value).max(), 1), err_msg=place)


@pytest.mark.parametrize("thumbnail", [vision.resnet18_v1, vision.resnet50_v2])
def test_thumbnail(thumbnail):
    graph = thumbnail(classes=10, thumbnail=True)(mx.sym.var("data"))
    assert graph.infer_shape(data=(2, 3, 32, 32))[1] == [(2, 10)]


def test_dropout_of_densenet_and_what_constructors_hand_on():
    net = vision.densenet121(dropout=0.3, classes=7, prefix="mine_")
    assert net.output.name == "mine_dense0"
    assert repr(net).count("Dropout(p = 0.3") == 58
    assert net(mx.sym.var("data")).infer_shape(data=(1, 3, 224, 224))[1] == [(1, 7)]


def test_export_and_import(tmp_path):
    net, data = facts.model(mx, SMALL)
    net.hybridize()
    expected = net(data).asnumpy()
    net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    np.testing.assert_array_equal(again(data).asnumpy(), expected)


# ---- trained parameters


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A network, images, and a folder with its file, whose checksum is known."""
    net, data = facts.model(mx, SMALL)
    net(data)
    net.save_parameters(str(tmp_path / "new"))
    digest = hashlib.sha1((tmp_path / "new").read_bytes()).hexdigest()
    monkeypatch.setitem(model_store._model_sha1, SMALL, digest)
    path = tmp_path / f"{SMALL}-{digest[:8]}.params"
    shutil.move(tmp_path / "new", path)
    return net, data, path


def test_pretrained_from_a_folder(trained, monkeypatch):
    net, data, path = trained
    again = vision.get_model(SMALL, pretrained=True, root=str(path.parent), classes=4, ctx=mx.cpu(1))
    assert again.output[0].weight.list_ctx() == [mx.cpu(1)]
    np.testing.assert_array_equal(again(data.as_in_context(mx.cpu(1))).asnumpy(), net(data).asnumpy())
    assert model_store.get_model_file(SMALL, root=path.parent) == str(path)
    monkeypatch.setenv("MXNET_HOME", str(path.parent))
    (path.parent / "models").mkdir()
    shutil.copy(path, path.parent / "models")
    assert model_store.get_model_file(SMALL) == str(path.parent / "models" / path.name)
    model_store.purge(path.parent)
    assert not path.exists()


def packed(path, archive, inside=None):
    """The file at `path` in an archive, as MXNet's project publishes it."""
    with zipfile.ZipFile(archive, "w") as file:
        file.write(path, inside or path.name)
    path.unlink()


def test_pretrained_from_an_archive_in_the_folder(trained):
    net, data, path = trained
    packed(path, path.with_suffix(".zip"))
    again = vision.get_model(SMALL, pretrained=True, root=path.parent, classes=4)
    np.testing.assert_array_equal(again(data).asnumpy(), net(data).asnumpy())
    assert path.exists()
    assert path.with_suffix(".zip").exists()  # it is the user's


def test_pretrained_by_download(trained, monkeypatch, tmp_path, capsys):
    net, data, path = trained
    published = tmp_path / "published" / "gluon" / "models"
    published.mkdir(parents=True)
    packed(path, published / f"{path.stem}.zip")
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "published").as_uri())
    root = tmp_path / "new" / "models"
    again = vision.get_model(SMALL, pretrained=True, root=root, classes=4)
    np.testing.assert_array_equal(again(data).asnumpy(), net(data).asnumpy())
    assert [each.name for each in root.iterdir()] == [path.name]  # no archive is left
    assert "Downloading" in capsys.readouterr().out
    # A damaged file is replaced
    (root / path.name).write_bytes(b"half a file")
    assert model_store.get_model_file(SMALL, root) == str(root / path.name)
    assert hashlib.sha1((root / path.name).read_bytes()).hexdigest() == model_store._model_sha1[SMALL]


def test_pretrained_with_other_contents(trained, monkeypatch):
    _, _, path = trained
    path.write_bytes(path.read_bytes() + b"x")
    monkeypatch.setenv("MXNET_GLUON_REPO", path.parent.as_uri())
    with pytest.raises(FileFormatError, match=r"its SHA-1 checksum is not [0-9a-f]{40}\. It could not be replaced: .* Get file"):
        vision.mobilenet_v2_0_25(pretrained=True, root=str(path.parent))
    assert path.exists()


@pytest.mark.parametrize("fault", ["cut off", "other contents", "other name", "no archive"])
def test_a_broken_archive_leaves_nothing(fault, trained, monkeypatch, tmp_path):
    _, _, path = trained
    published = tmp_path / "gluon" / "models"
    published.mkdir(parents=True)
    archive = published / f"{path.stem}.zip"
    if fault == "other contents":
        path.write_bytes(b"parameters of somebody")
    packed(path, archive, "other.params" if fault == "other name" else None)
    if fault == "cut off":
        archive.write_bytes(archive.read_bytes()[:-400])
    if fault == "no archive":
        archive.write_text("<html>try again later</html>")
    monkeypatch.setenv("MXNET_GLUON_REPO", tmp_path.as_uri())
    root = tmp_path / "models"
    with pytest.raises(FileFormatError, match=f"Get file.*{path.stem}.zip and unpack it into"):
        model_store.get_model_file(SMALL, root)
    assert list(root.iterdir()) == []


def test_a_full_disk_is_named(trained, monkeypatch):
    _, _, path = trained
    packed(path, path.with_suffix(".zip"))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        model_store.get_model_file(SMALL, path.parent)
    assert caught.value.errno == errno.ENOSPC
    assert {each.name for each in path.parent.iterdir()} == {path.with_suffix(".zip").name}


@pytest.mark.parametrize("name", vision._MODELS)
def test_pretrained_without_a_file(name, tmp_path, monkeypatch):
    file = f"{name}-{model_store.short_hash(name)}"
    assert (
        model_store.repository.url("gluon/models", "x")
        == "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/models/x"
    )
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "none").as_uri() + "/")
    with pytest.raises(MissingFileError) as caught:
        vision.get_model(name, pretrained=True, root=str(tmp_path / "models"))
    for part in (
        str(tmp_path / "models" / f"{file}.params"),
        f"Get {(tmp_path / 'none').as_uri()}/gluon/models/{file}.zip and unpack it into {tmp_path / 'models'}",
        "as `root`",
    ):
        assert part in str(caught.value)


def test_no_folder_to_purge(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        model_store.purge(tmp_path / "nosuch")


# ---- errors


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"Model resnet51_v1 is not supported\. Available options are\n\talexnet\n\tdensenet121"):
        vision.get_model("ResNet51_v1")
    assert isinstance(vision.get_model("AlexNet"), vision.AlexNet)
    with pytest.raises(ValueError, match=r"Pretrained model for resnet51_v1 is not available"):
        model_store.get_model_file("resnet51_v1")
    with pytest.raises(ValueError, match=r"Pretrained model for mobilenet0\.33 is not available"):
        vision.get_mobilenet(0.33, pretrained=True)
    with pytest.raises(AssertionError, match="Invalid number of layers: 19"):
        vision.get_resnet(1, 19)
    with pytest.raises(AssertionError, match="Invalid resnet version: 3"):
        vision.get_resnet(3, 18)
    with pytest.raises(AssertionError, match="one more than layers"):
        vision.ResNetV2(vision.BasicBlockV2, [1, 1], [8, 8])
    with pytest.raises(AssertionError, match=r"Unsupported SqueezeNet version 1\.2"):
        vision.SqueezeNet("1.2")
    with pytest.raises(AssertionError, match="must have a number for each block"):
        vision.VGG([1, 2], [8])
    for get in (vision.get_vgg, vision.densenet.get_densenet):
        with pytest.raises(KeyError, match="num_layers=12"):
            get(12)
