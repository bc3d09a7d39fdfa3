"""Writes tests/data/mxnet-1.9.1/automatic_names.json, with MXNet 1.9.1: how nodes are called that the user gives no name.

    PYTHON_THAT_HAS_MXNET tests/record_automatic_names.py

Each function of `mx.sym` and its modules is called in a NameManager of its own, and so is each row of tests/sym/name_cases.py. MXNet asks
for the name before it looks at a call's arguments: functions that it generates need none here. A list has the names of a call that makes
several nodes. `graphs` has the operators and names of nodes in JSON.
"""

import contextlib
import json
import operator
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "sym"))

import mxnet  # noqa: E402
import name_cases as cases  # noqa: E402  # found by the line above


class Recorder(mxnet.name.NameManager):
    """Keeps the names that it gives."""

    def __init__(self):
        super().__init__()
        self.given = []

    def get(self, name, hint):
        self.given.append(super().get(name, hint))
        return self.given[-1]


def names_of(call):
    """The names that are given in `call`."""
    with Recorder() as recorder:
        with contextlib.suppress(mxnet.MXNetError):  # arguments are missing
            call()
    if not recorder.given:
        raise SystemExit("a call gave no name")
    return recorder.given if len(recorder.given) > 1 else recorder.given[0]


def main():
    x, y = mxnet.sym.var("x"), mxnet.sym.var("y")
    names = {}
    for path in cases.functions(mxnet.sym):
        if path not in cases.CALLS:
            names[path] = names_of(operator.attrgetter(path)(mxnet.sym))
    for path, call in cases.CALLS.items():
        names[path] = names_of(lambda call=call: call(mxnet.sym, x, y))
    graphs = {}
    for path, call in cases.GRAPHS.items():
        with mxnet.name.NameManager():
            graphs[path] = cases.nodes(call(mxnet.sym, x, y))
    with open(os.path.join(HERE, "data", "mxnet-1.9.1", "automatic_names.json"), "w") as file:
        json.dump({"mxnet": mxnet.__version__, "names": names, "graphs": graphs}, file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
