"""BLAS's own threads, which the tasks of the engine must share.

A product of matrices that runs alone may use all cores; two that run at once on all cores would wait for each other. Book: chapter 2.
"""

from __future__ import annotations

from typing import Any

import threadpoolctl

from ..base import env_int
from ..kernels import threads

#: MXNET_ENFORCE_DETERMINISM: a sum is shared by as many threads whatever else runs, so that each run gives the same bits.
FIXED = env_int("MXNET_ENFORCE_DETERMINISM", 0) != 0


class BlasThreads:
    """Shares the cores out among tasks that use BLAS at the same time: each gets its part of BLAS's threads.

    The number is changed only when such tasks meet, and set back when all are done: a change concerns the whole process, also
    products that the user computes with NumPy meanwhile.
    """

    def __init__(self) -> None:
        self.controller: Any = None
        self.full = 1
        self.now = 0

    def share(self, running: int) -> None:
        """Set BLAS's threads, and those of kernels, for `running` tasks at once. The engine's lock is held; nothing is done twice."""
        if FIXED:
            return
        threads.running = running
        if self.controller is None:
            if running < 2:
                return
            self.controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
            counts = [library.num_threads for library in self.controller.lib_controllers]
            self.full = self.now = max(counts, default=1)
        wanted = max(1, self.full // max(1, running))
        if wanted != self.now:
            self.now = wanted
            for library in self.controller.lib_controllers:
                library.set_num_threads(wanted)
                if hasattr(library, "clear_controlling_thread"):
                    library.clear_controlling_thread()  # else threadpoolctl would heed no other thread from now on
