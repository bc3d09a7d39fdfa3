"""`mx.parallel.simulate`: a modelled cluster, on which the graph of a training step is replayed.

    graph = simulate.recorded(step, net.collect_params(), batch=64)         what one device does, as it was seen
    simulate.data_parallel(graph, 8, link="NVLink V100")                    what a step on eight would take
    simulate.scaling(simulate.model("resnet50"), batch=4096)                without running anything: from 1 to 4,096 devices
    simulate.compare(make, [mx.cpu(0), mx.cpu(1)], batch=256)               predicted beside measured

In the order in which to read: graph.py, tasks and what they wait for; machine.py, topologies.py and hardware.py, what they run on;
simulator.py and result.py, what happens when; recorder.py and recording.py, graphs of real steps; models.py, graphs of well-known
networks; collectives.py, how gradients are added; replicas.py and prediction.py, many devices; calibration.py and comparison.py, this
machine. Units are SI: seconds, bytes, FLOP, and these a second. Book: chapter 11.
"""

from .calibration import Benchmarks, calibrate
from .comparison import Comparison, compare, on_lanes
from .graph import HOST, Task, TaskGraph, Transfer, Work
from .hardware import DEVICES, LINKS
from .machine import Device, Link, Machine, Way
from .models import Layer, Model, model
from .prediction import ALGORITHMS, Curve, Prediction, data_parallel, explore, scaling
from .recording import record, recorded, typical
from .result import Result, Step
from .simulator import replay
from .topologies import bus, cluster, connected, of_simulated_gpus, ring, switch

__all__ = [
    "ALGORITHMS", "DEVICES", "HOST", "LINKS", "Benchmarks", "Comparison", "Curve", "Device", "Layer", "Link", "Machine", "Model",
    "Prediction", "Result", "Step", "Task", "TaskGraph", "Transfer", "Way", "Work", "bus", "calibrate", "cluster", "compare",
    "connected", "data_parallel", "explore", "model", "of_simulated_gpus", "on_lanes", "record", "recorded", "replay", "ring", "scaling",
    "switch", "typical",
]  # fmt: skip
