"""W5: y = x + 1 again and again on 2000 x 2000, waiting after each operation, or once at the end. Seconds for a thousand."""

from __future__ import annotations

from harness import Unit, main, peer, timed

SHAPE = (2000, 2000)
COUNT = 200


def in_mxnet(mx: object) -> Unit:
    """The unit of work in MXNet's API."""
    nd = mx.nd  # type: ignore[attr-defined]  # either library
    x = nd.ones(SHAPE)
    x.wait_to_read()

    def each() -> None:
        for _ in range(COUNT):
            y = x + 1
            y.wait_to_read()

    def end() -> None:
        for _ in range(COUNT):
            y = x + 1  # noqa: F841  # computed, and not used: that is the workload
        nd.waitall()

    return lambda: {"waiting each time": timed(each) * 1000 / COUNT, "waiting at the end": timed(end) * 1000 / COUNT}


@peer("minimx")
def _() -> Unit:
    import minimx as mx

    return in_mxnet(mx)


@peer("mxnet")
def _() -> Unit:
    import mxnet as mx

    return in_mxnet(mx)


@peer("torch")
def _() -> Unit:
    import torch

    x = torch.ones(*SHAPE)

    def run() -> None:
        for _ in range(COUNT):
            y = x + 1  # noqa: F841

    return lambda: {"waiting at the end": timed(run) * 1000 / COUNT}


@peer("onnxruntime")
def _() -> Unit:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node("Add", ["x", "one"], ["y"])
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "y")]
    graph = helper.make_graph([node], "add", value[:1], value[1:], [numpy_helper.from_array(np.float32(1), "one")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = min(onnx.IR_VERSION, 10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x, y = np.ones(SHAPE, np.float32), np.empty(SHAPE, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, SHAPE, y.ctypes.data)

    def run() -> object:
        for _ in range(COUNT):
            session.run_with_iobinding(binding)
        return x, y  # the binding has their addresses only

    return lambda: {"waiting at the end": timed(run) * 1000 / COUNT}


@peer("numpy")
def _() -> Unit:
    import numpy as np

    x, y, one = np.ones(SHAPE, np.float32), np.empty(SHAPE, np.float32), np.float32(1)

    def run() -> None:
        for _ in range(COUNT):
            np.add(x, one, out=y)

    return lambda: {"waiting at the end": timed(run) * 1000 / COUNT}


if __name__ == "__main__":
    main("W5 x + 1 a thousand times", __file__)
