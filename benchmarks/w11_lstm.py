"""W11: an LSTM, 256 to 256, on 35 steps of 32 sequences: forward and backward."""

from __future__ import annotations

from typing import Any

from gluon_peers import enter, hybridized
from harness import Bar, Unit, Workload, timed

STEPS, BATCH, SIZE = 35, 32, 256
COUNT = 5

work = Workload(__file__, "LSTM, 35 steps, forward and backward", bars=(Bar("forward and backward", 1.0, against=("torch",)),))


def unit(run: Any) -> Unit:
    """The unit of work: `run` does COUNT of them."""
    run()
    return lambda: {"forward and backward": timed(run) / COUNT}


def in_gluon(mx: Any, how: dict[str, bool] | None) -> Unit:
    """The unit of work in MXNet's API."""
    net = mx.gluon.rnn.LSTM(SIZE, input_size=SIZE)
    net.initialize()
    hybridized(net, how)
    x = mx.nd.random.normal(shape=(STEPS, BATCH, SIZE))

    def run() -> None:
        for _ in range(COUNT):
            with mx.autograd.record():
                total = net(x).sum()
            total.backward()
        mx.nd.waitall()

    return unit(run)


enter(work, in_gluon, "eager", "hybridized")


@work.peer("torch")
def _() -> Unit:
    import torch

    torch.set_num_threads(2)
    net, x = torch.nn.LSTM(SIZE, SIZE), torch.randn(STEPS, BATCH, SIZE)

    def run() -> None:
        for _ in range(COUNT):
            net.zero_grad()
            net(x)[0].sum().backward()

    return unit(run)


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    def uniform(number: int, *shape: int) -> Any:
        return jax.random.uniform(jax.random.key(number), shape, minval=-(SIZE**-0.5), maxval=SIZE**-0.5)

    weights = (uniform(0, SIZE, 4 * SIZE), uniform(1, SIZE, 4 * SIZE), uniform(2, 4 * SIZE))
    x = jax.random.normal(jax.random.key(3), (STEPS, BATCH, SIZE))

    def loss(weights: Any) -> Any:
        of_input, of_state, bias = weights

        def cell(state: Any, gates: Any) -> Any:
            hidden, memory = state
            enter, forget, new, leave = jnp.split(gates + hidden @ of_state, 4, -1)
            memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
            hidden = jax.nn.sigmoid(leave) * jnp.tanh(memory)
            return (hidden, memory), hidden

        zeros = jnp.zeros((BATCH, SIZE))
        return jax.lax.scan(cell, (zeros, zeros), x @ of_input + bias)[1].sum()

    gradient = jax.jit(jax.grad(loss))

    def run() -> None:
        for _ in range(COUNT):
            found = gradient(weights)
        jax.block_until_ready(found)

    return unit(run)


if __name__ == "__main__":
    work.main()
