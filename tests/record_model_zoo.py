"""Writes tests/data/model_zoo, with MXNet 1.9.1: what it exports of networks of its zoo, and what they say of an image.

    PYTHON_THAT_HAS_MXNET tests/record_model_zoo.py [FOLDER]

For each network of tests/gluon/model_zoo_nets.py: the graph, NAME-symbol.json; for the narrow ones the parameters as `export` writes them,
NAME-0000.params, and as `save_parameters` does, NAME.params; for all of them the scores, in scores.json.
"""

import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "gluon"))

import model_zoo_nets as nets  # noqa: E402  # found by the line before
import mxnet  # noqa: E402


def main(folder):
    os.makedirs(folder, exist_ok=True)
    scores = {}
    for name in [*nets.SMALL, *nets.LARGE]:
        net, image = nets.made(mxnet, name)
        scores[name] = net(image).asnumpy().ravel().tolist()
        if name in nets.SMALL:
            net.export(os.path.join(folder, name))
            net.save_parameters(os.path.join(folder, name + ".params"))
        else:
            with tempfile.TemporaryDirectory() as elsewhere:
                net.export(os.path.join(elsewhere, name))
                os.replace(os.path.join(elsewhere, name + "-symbol.json"), os.path.join(folder, name + "-symbol.json"))
        print(name, [round(score, 4) for score in scores[name]])
    with open(os.path.join(folder, "scores.json"), "w") as file:
        json.dump({"mxnet": mxnet.__version__, "scores": scores}, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "data", "model_zoo"))
