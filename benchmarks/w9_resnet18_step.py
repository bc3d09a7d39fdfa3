"""W9: one step of training ResNet-18 on 64 images of 32 x 32. Seconds a step."""

from __future__ import annotations

import networks
from harness import Bar, Unit, Workload
from training import enter_gluon, enter_torch, jax_step

BATCH, SIDE, CLASSES = 64, 32, 10

work = Workload(__file__, "training step, ResNet-18, 64 images of 32 x 32", bars=(Bar("a step", 1.0),))

enter_gluon(work, lambda mx: networks.in_gluon(mx, networks.RESNET18, CLASSES), BATCH, (3, SIDE, SIDE), 1)
enter_torch(work, lambda nn: networks.in_torch(nn, networks.RESNET18, CLASSES), BATCH, (3, SIDE, SIDE), 1)


@work.peer("jax", "jit")
def _() -> Unit:
    net = networks.InJax(networks.RESNET18, CLASSES, training=True)
    return jax_step(net.forward, net.parameters, BATCH, (SIDE, SIDE, 3), 1)


if __name__ == "__main__":
    work.main()
