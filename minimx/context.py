"""`mx.context`: devices under the name that MXNet's module has. They are made in device.py; memory is asked of storage.py."""

from .device import Context, cpu, cpu_pinned, cpu_shared, current_context, gpu, num_gpus
from .storage import gpu_memory_info

__all__ = ["Context", "cpu", "cpu_pinned", "cpu_shared", "current_context", "gpu", "gpu_memory_info", "num_gpus"]
