"""What MXNet 1.9.1 says of the networks of its zoo. With MXNet installed this file writes the tables in test_model_zoo.py, with minimx
that test compares: `python tests/gluon/model_zoo_facts.py`.
"""

import hashlib
import json

import numpy as np


def size(name):
    """The side of the images that a network is made for."""
    return 299 if name == "inceptionv3" else 224


def structure(mx, name):
    """The number of all elements of parameters; checksums of the parameters in their order - place, name, shape, whether they learn -
    and of the graph's nodes."""
    net = mx.gluon.model_zoo.vision.get_model(name, prefix="net_")
    with mx.name.NameManager():
        graph = net(mx.sym.var("data"))
    shapes, _, states = graph.infer_shape(data=(1, 3, size(name), size(name)))
    shape = dict(zip(graph.list_arguments() + graph.list_auxiliary_states(), shapes + states))
    rows = [[place, param.name, shape[param.name], param.grad_req] for place, param in net._collect_params_with_prefix().items()]
    order = list(net.collect_params())
    count = sum(int(np.prod(each)) for name, each in shape.items() if name != "data")
    return count, checksum([rows, order]), checksum(json.loads(graph.tojson())["nodes"])


def checksum(value):
    return hashlib.sha1(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def model(mx, name):
    """A network with four classes, known parameters and an image as small as it takes."""
    return filled(mx, mx.gluon.model_zoo.vision.get_model(name, classes=4), SMALLEST[name])


def filled(mx, net, side, number=1):
    """`net` with known parameters; and so many images, of `side` pixels a side."""
    net.initialize()
    random = np.random.RandomState(0)
    data = mx.nd.array(random.random_sample((number, 3, side, side)) - 0.5)
    net.infer_shape(data)
    for place, param in net._collect_params_with_prefix().items():
        value = random.random_sample(param.shape)
        if place.endswith("weight"):
            value = (value - 0.5) * np.sqrt(24 / np.prod(param.shape[1:]))
        elif not place.endswith(("gamma", "var")):
            value -= 0.5
        param.set_data(mx.nd.array(value + 0.5 * place.endswith(("gamma", "var"))))
    return net, data


#: A network of each kind, and the smallest images that it takes (larger ones where that is 1).
SMALLEST = {
    "alexnet": 63, "vgg11": 32, "vgg11_bn": 32, "squeezenet1.1": 209, "densenet121": 221, "inceptionv3": 299, "mobilenet0.25": 40,
    "mobilenetv2_0.25": 40, "resnet18_v1": 40, "resnet50_v1": 40, "resnet18_v2": 40, "resnet50_v2": 40,
}  # fmt: skip


if __name__ == "__main__":
    import mxnet
    from mxnet.gluon.model_zoo.model_store import _model_sha1

    print(checksum(_model_sha1))
    for each in sorted(_model_sha1):
        count, parameters, nodes = structure(mxnet, each)
        print(f'    "{each}": ({count}, "{parameters}", "{nodes}"),')
    for each in SMALLEST:
        net, data = model(mxnet, each)
        scores = ", ".join(f"{score:.5g}" for score in net(data).asnumpy()[0])
        print(f'    "{each}": [{scores}],')
