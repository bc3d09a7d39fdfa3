"""Small trainings with `mx.mod` and `mx.model`, written once for MXNet and minimx: what they give is compared number by number.

    MXNET_ENGINE_TYPE=NaiveEngine python tests/module/scenarios.py

writes tests/data/mxnet-1.9.1/module.json where MXNet 1.9.1 is installed. (Its other engine reads running means before they are written.)
A scenario is called with the library and returns arrays, numbers and texts by name. Parameters and data come from NumPy's generator,
initializers are not used, so both begin with the same numbers.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parents[1] / "data" / "mxnet-1.9.1" / "module.json"

Scenario = Callable[[Any, str], dict[str, Any]]  # the library, a folder for files -> results
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


# ---- data and networks


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


X, Y = numbers(11, 3), np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1], np.float32)


def iterator(mx: Any, batch_size: int = 4, **how: Any) -> Any:
    return mx.io.NDArrayIter(X, Y, batch_size=batch_size, **how)


def batch(mx: Any, begin: int, end: int, **how: Any) -> Any:
    return mx.io.DataBatch([mx.nd.array(X[begin:end])], [mx.nd.array(Y[begin:end])], **how)


def perceptron(mx: Any) -> Any:
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc1")
    hidden = mx.sym.Activation(hidden, act_type="tanh", name="act")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=2, name="fc2"), name="softmax")


def values(mx: Any) -> dict[str, Any]:
    shapes = {"fc1_weight": (3, 3), "fc1_bias": (3,), "fc2_weight": (2, 3), "fc2_bias": (2,)}
    return {name: mx.nd.array(numbers(*shape, seed=seed)) for seed, (name, shape) in enumerate(shapes.items(), 1)}


def convolutional(mx: Any) -> Any:
    data = mx.sym.Convolution(mx.sym.var("data"), num_filter=2, kernel=(3, 3), no_bias=True, name="conv")
    data = mx.sym.Activation(mx.sym.BatchNorm(data, fix_gamma=False, name="bn"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), name="softmax")


def trained(
    mx: Any, context: Any, workloads: Any = None, kvstore: Any = "local", optimizer: str = "sgd", **params: Any
) -> dict[str, Any]:
    """Two epochs of a network with running means, on several devices."""
    data = mx.io.NDArrayIter(numbers(12, 1, 4, 4), np.arange(12) % 2, batch_size=6)
    module = mx.mod.Module(convolutional(mx), context=context, work_load_list=workloads)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(
        arg_params={
            "conv_weight": mx.nd.array(numbers(2, 1, 3, 3, seed=1)), "bn_gamma": mx.nd.ones((2,)), "bn_beta": mx.nd.zeros((2,)),
            "fc_weight": mx.nd.array(numbers(2, 8, seed=2)), "fc_bias": mx.nd.zeros((2,)),
        },
        aux_params={"bn_moving_mean": mx.nd.zeros((2,)), "bn_moving_var": mx.nd.ones((2,))},
    )  # fmt: skip
    module.init_optimizer(
        kvstore=kvstore, optimizer=optimizer, optimizer_params=params or {"learning_rate": 0.1, "momentum": 0.9}
    )
    for _ in range(2):
        data.reset()
        for each in data:
            module.forward_backward(each)
            module.update()
    arg_params, aux_params = module.get_params()
    return {
        **arg_params, **aux_params, "output": module.get_outputs()[0], "parts": module.get_outputs(False)[0],
        "names": str(sorted(module._optimizer.idx2name.items())),
    }  # fmt: skip


# ---- scenarios


@scenario
def fit(mx: Any, folder: str) -> dict[str, Any]:
    told: list[Any] = []
    test = mx.io.NDArrayIter(X[:7], Y[:7], batch_size=4)
    module = mx.mod.Module(perceptron(mx))

    def at_batch(param: Any) -> None:
        told.append([param.epoch, param.nbatch, *[value for _, value in param.eval_metric.get_name_value()]])

    module.fit(
        iterator(mx), eval_data=test, eval_metric=["acc", "ce"], optimizer_params={"learning_rate": 0.3, "momentum": 0.9, "wd": 1e-3},
        arg_params=values(mx), aux_params={}, num_epoch=3, batch_end_callback=[at_batch],
        epoch_end_callback=lambda epoch, symbol, args, aux: told.append([epoch, float(args["fc1_weight"].asnumpy().sum()), len(aux)]),
        eval_end_callback=lambda param: told.append([param.epoch, param.nbatch, param.eval_metric.get_name_value()[1][1]]),
        eval_batch_end_callback=lambda param: told.append([param.epoch, param.nbatch]),
    )  # fmt: skip
    found = {f"told{number}": entry for number, entry in enumerate(told)}
    found.update(module.get_params()[0])
    found["score"] = [value for _, value in module.score(test, ["acc", "ce"])]
    found["predict"] = module.predict(test)
    found["first"] = module.predict(test, num_batch=1, always_output_list=True)
    found["apart"] = [outputs[0] for outputs in module.predict(test, merge_batches=False)]
    found["array"] = module.predict(mx.nd.array(X[:4])).copy()
    found["iterated"] = [outputs[0].copy() for outputs, _, _ in module.iter_predict(test)]
    found["shapes"] = f"{module.data_shapes} {module.label_shapes} {module.output_shapes}"
    found["of what"] = f"{module.data_names} {module.label_names} {module.output_names}"
    return found


@scenario
def one_device(mx: Any, folder: str) -> dict[str, Any]:
    return trained(mx, mx.cpu())


@scenario
def two_devices(mx: Any, folder: str) -> dict[str, Any]:
    return trained(mx, [mx.cpu(0), mx.cpu(1)])


@scenario
def two_devices_that_add_on_the_device(mx: Any, folder: str) -> dict[str, Any]:
    return trained(mx, [mx.cpu(0), mx.cpu(1)], kvstore="device")


@scenario
def two_devices_apart(mx: Any, folder: str) -> dict[str, Any]:
    return trained(mx, [mx.cpu(0), mx.cpu(1)], kvstore=None)


@scenario
def unequal_devices(mx: Any, folder: str) -> dict[str, Any]:
    return trained(mx, [mx.cpu(0), mx.cpu(1), mx.cpu(2)], workloads=[1, 3, 2])


@scenario
def schedule(mx: Any, folder: str) -> dict[str, Any]:
    return trained(
        mx, [mx.cpu(0), mx.cpu(1)], optimizer="rmsprop", learning_rate=0.01, wd=0.01,
        lr_scheduler=mx.lr_scheduler.FactorScheduler(2, 0.5),
    )  # fmt: skip


@scenario
def batches_of_other_sizes(mx: Any, folder: str) -> dict[str, Any]:
    module = mx.mod.Module(perceptron(mx))
    module.bind([("data", (4, 3))], [("softmax_label", (4,))], inputs_need_grad=True)
    module.init_params(arg_params=values(mx))
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    found = {}
    for number, (begin, end) in enumerate([(0, 4), (4, 6), (2, 10), (6, 8), (7, 11)]):
        module.forward(batch(mx, begin, end), is_train=True)
        module.backward()
        module.update()
        found[f"gradient{number}"] = module.get_input_grads()[0].copy()
        found[f"output{number}"] = module.get_outputs()[0].copy()
    return {**found, **module.get_params()[0]}


@scenario
def head_gradients(mx: Any, folder: str) -> dict[str, Any]:
    data = mx.sym.var("data")
    heads = mx.sym.Group([mx.sym.FullyConnected(data, num_hidden=2, name="a"), mx.sym.tanh(data * 2, name="b")])
    module = mx.mod.Module(heads, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (5, 3))], inputs_need_grad=True, grad_req="add")
    module.init_params(arg_params={"a_weight": mx.nd.array(numbers(2, 3)), "a_bias": mx.nd.zeros((2,))})
    for _ in range(2):
        module.forward(mx.io.DataBatch([mx.nd.array(X[:5])]), is_train=True)
        module.backward([mx.nd.ones((5, 2)), mx.nd.ones((5, 3)) * 2])
    return {
        "joined": module.get_input_grads()[0], "parts": module.get_input_grads(False)[0], "shapes": str(module.output_shapes),
        "gradients": [copies[0] for copies in module._exec_group.grad_arrays], "outputs": module.get_outputs(),
    }  # fmt: skip


@scenario
def fixed_and_slow_parameters(mx: Any, folder: str) -> dict[str, Any]:
    found = {}
    weight = mx.sym.var("fc1_weight", lr_mult=0.1)
    hidden = mx.sym.FullyConnected(mx.sym.var("data"), weight=weight, num_hidden=3, name="fc1")
    graph = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=2, name="fc2"), name="softmax")
    for context in ([mx.cpu()], [mx.cpu(0), mx.cpu(1)]):
        module = mx.mod.Module(graph, fixed_param_names=["fc2_bias"], context=context)
        module.fit(iterator(mx), arg_params=values(mx), num_epoch=2, optimizer_params={"learning_rate": 0.1, "wd": 0.05})
        found.update((f"{name}.{len(context)}", array) for name, array in module.get_params()[0].items())
    return found


@scenario
def buckets(mx: Any, folder: str) -> dict[str, Any]:
    def generate(key: int) -> Any:
        total = mx.sym.sum(mx.sym.Reshape(mx.sym.var("data"), shape=(-1, key)), axis=1, keepdims=True)
        scores = mx.sym.FullyConnected(total, num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(scores, name="softmax"), ("data",), ("softmax_label",)

    def of_bucket(key: int, begin: int, end: int) -> Any:
        data, label = mx.nd.array(X[begin:end, :key]), mx.nd.array(Y[begin:end])
        return mx.io.DataBatch(
            [data], [label], bucket_key=key, provide_data=[mx.io.DataDesc("data", data.shape)],
            provide_label=[mx.io.DataDesc("softmax_label", label.shape)],
        )  # fmt: skip

    module = mx.mod.BucketingModule(generate, default_bucket_key=3)
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(arg_params={"fc_weight": mx.nd.array(numbers(2, 1)), "fc_bias": mx.nd.zeros((2,))})
    module.init_optimizer(optimizer_params={"learning_rate": 0.3, "momentum": 0.5})
    found = {}
    for number, (key, end) in enumerate([(3, 4), (2, 6), (1, 7), (2, 8), (3, 7), (2, 6)]):
        each = of_bucket(key, number, end)
        module.prepare(each)
        module.forward_backward(each)
        module.update()
        found[f"output{number}"] = module.get_outputs()[0].copy()
    found.update(module.get_params()[0])
    module.save_checkpoint(f"{folder}/bucket", 7)
    again = mx.mod.BucketingModule.load(f"{folder}/bucket", 7, sym_gen=generate, default_bucket_key=3)
    again.bind([("data", (4, 3))], [("softmax_label", (4,))])
    again.forward(of_bucket(2, 0, 3), is_train=False)
    found["loaded"] = again.get_outputs()[0]
    return found


@scenario
def chain(mx: Any, folder: str) -> dict[str, Any]:
    first = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc1"), act_type="tanh")
    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc2")
    both = mx.mod.SequentialModule()
    both.add(mx.mod.Module(first, label_names=[]))
    both.add(mx.mod.Module(mx.sym.SoftmaxOutput(scores, name="softmax")), take_labels=True, auto_wiring=True)
    both.fit(iterator(mx), arg_params=values(mx), num_epoch=2, optimizer_params={"learning_rate": 0.2})
    found = {f"{name}.graphs": array for name, array in both.get_params()[0].items()}
    found["score"] = both.score(iterator(mx), "acc")[0][1]

    def gradient(scores: Any, labels: Any) -> Any:
        powers = np.exp(scores.asnumpy())
        powers /= powers.sum(axis=1, keepdims=True)
        powers[np.arange(len(powers)), labels.asnumpy().astype(int)] -= 1
        return powers

    three = mx.mod.SequentialModule()
    three.add(mx.mod.Module(first, label_names=[])).add(mx.mod.Module(scores, label_names=[]), auto_wiring=True)
    three.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    data = iterator(mx)
    three.bind(data.provide_data, data.provide_label)
    three.init_params(arg_params=values(mx))
    three.init_optimizer(optimizer_params={"learning_rate": 0.2})
    for each in data:
        three.forward_backward(each)
        three.update()
    found.update((f"{name}.python", array) for name, array in three.get_params()[0].items())
    found["output"] = three.get_outputs()[0]
    return found


@scenario
def resumed(mx: Any, folder: str) -> dict[str, Any]:
    found = {}
    how = {"optimizer_params": {"learning_rate": 0.2, "momentum": 0.9}}
    for context in ([mx.cpu()], [mx.cpu(0), mx.cpu(1)]):
        prefix, data = f"{folder}/resumed{len(context)}", iterator(mx)
        module = mx.mod.Module(perceptron(mx), context=context)
        module.fit(data, arg_params=values(mx), num_epoch=1, **how)
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
        again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=context)
        data.reset()
        again.fit(data, num_epoch=2, begin_epoch=1, **how)
        found.update((f"{name}.{len(context)}", array) for name, array in again.get_params()[0].items())
        found[f"graph{len(context)}"] = mx.model.load_checkpoint(prefix, 1)[0].tojson()
    return found


@scenario
def parameters_that_are_set(mx: Any, folder: str) -> dict[str, Any]:
    module = mx.mod.Module(perceptron(mx))
    module.bind([("data", (4, 3))], [("softmax_label", (4,))])
    module.init_params(mx.init.One())
    found = {f"{name}.one": array.copy() for name, array in module.get_params()[0].items()}
    module.set_params({"fc1_weight": mx.nd.ones((3, 3)) * 3}, {}, allow_missing=True)
    found["fc1_weight.three"] = module.get_params()[0]["fc1_weight"].copy()
    module.set_params({**values(mx), "unknown": mx.nd.ones((1,))}, {})  # which is ignored
    module.bind([("data", (2, 3))], for_training=False, force_rebind=True)
    module.forward(mx.io.DataBatch([mx.nd.array(X[:2])]), is_train=False)
    found["output"] = module.get_outputs()[0]
    return found


@scenario
def feed_forward(mx: Any, folder: str) -> dict[str, Any]:
    told: list[Any] = []
    model = mx.model.FeedForward(
        perceptron(mx), num_epoch=3, learning_rate=0.2, momentum=0.9, arg_params=values(mx), numpy_batch_size=4
    )
    model.fit(
        iterator(mx), eval_data=(X[:8], Y[:8]), batch_end_callback=lambda param: told.append([param.epoch, param.nbatch]),
        eval_end_callback=lambda param: told.append([param.epoch, param.nbatch]),
    )  # fmt: skip
    found = dict(model.arg_params)
    found["told"] = str(told)
    found["predict"], found["score"] = model.predict(X), model.score(iterator(mx))
    found["with data"] = list(model.predict(iterator(mx), return_data=True))
    model.save(f"{folder}/forward")
    found["loaded"] = mx.model.FeedForward.load(f"{folder}/forward", 3).predict(X[:3])
    model = mx.model.FeedForward(
        perceptron(mx), ctx=[mx.cpu(0), mx.cpu(1)], num_epoch=3, epoch_size=2, optimizer="adam", arg_params=values(mx)
    )
    model.fit(iterator(mx))
    found.update((f"{name}.two", array) for name, array in model.arg_params.items())
    return found


@scenario
def metrics(mx: Any, folder: str) -> dict[str, Any]:
    module = mx.mod.Module(perceptron(mx), context=[mx.cpu(0), mx.cpu(1)])
    data = iterator(mx)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(arg_params=values(mx))
    found: dict[str, Any] = {"score": [value for _, value in module.score(data, ["acc", "ce"], num_batch=2)]}
    parts = [batch(mx, 0, 2), batch(mx, 2, 4)]  # cut for the devices already
    module.forward(parts, is_train=True)
    module.backward()
    metric = mx.metric.create("acc")
    module.update_metric(metric, [part.label for part in parts], pre_sliced=True)
    found["output"], found["sliced"] = module.get_outputs()[0], metric.get()[1]
    return found


# ---- results as JSON


def plain(value: Any) -> Any:
    """Arrays as nested lists of numbers that JSON keeps exactly enough."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return float(f"{value:.7g}") if isinstance(value, float) else value


def results(mx: Any, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {key: plain(value) for key, value in SCENARIOS[name](mx, folder).items()}


if __name__ == "__main__":
    import mxnet

    lines = [f"{json.dumps(name)}: {json.dumps(results(mxnet, name), sort_keys=True)}" for name in SCENARIOS]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{RECORD}: {RECORD.stat().st_size} bytes\n")
