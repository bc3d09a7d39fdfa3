"""Chapter 1, NDArray and autograd: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        ("def sees_writes(x, y):\n    return True", "got True"),
        (
            """
def sees_writes(x, y):
    x[:] = -1  # and never back
    return (y == -1).sum().asscalar() == y.size
""",
            "got 'x changed'",
        ),
        ("def sees_writes(x, y):\n    return x is y  # the objects", "got False"),
    ],
    "solution-2": [
        ("def tangent(a):\n    return np.tanh(a.value)  # no Tracked", "tangent must return a Tracked"),
        ("def tangent(a):\n    return Tracked(np.tanh(a.value), [(a, lambda g: g)])  # no derivative", "got 0.48"),
        (
            """
def tangent(a):
    y = np.tanh(a.value)
    return Tracked(y, [(a, lambda g: 1 - y * y)])  # what comes from above is left out
""",
            "got 0.94",
        ),
    ],
    "solution-3": [
        ("def nth_derivative(function, x, n):\n    return function(x)  # none", "got [0.0, 0.4794, 0.9093]"),
        (
            """
def nth_derivative(function, x, n):  # the second has no graph
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        y = function(x)
        for _ in range(n):
            y = autograd.grad(y, x)
    return y
""",
            "it raised MXNetError",
        ),
        ("def nth_derivative(function, x, n):\n    return (-1) ** n * function(x)", "got [-0.0, -0.4794, -0.9093]"),
    ],
    "solution-4": [
        (
            """
def in_parts(images, labels, size):  # the last part alone
    weight.attach_grad()
    for start in range(0, len(labels), size):
        part = slice(start, start + size)
        with autograd.record():
            loss = cross_entropy(net(images[part]), labels[part])
        loss.backward()
    return weight.grad.copy()
""",
            "where they differ most, wanted -0.85",
        ),
        (
            """
def in_parts(images, labels, size):  # grad_req stays
    weight.attach_grad('add')
    for start in range(0, len(labels), size):
        part = slice(start, start + size)
        with autograd.record():
            loss = cross_entropy(net(images[part]), labels[part])
        loss.backward()
    return weight.grad.copy()
""",
            "got \"grad_req='add'\"",
        ),
        (
            """
def in_parts(images, labels, size):  # zeros
    weight.attach_grad()
    return weight.grad
""",
            "where they differ most, wanted 1.4",
        ),
    ],
}
