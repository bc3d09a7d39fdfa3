"""Chapter 10, several GPUs with Gluon: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "equal-solution": [
        ("def same_everywhere(net):\n    return False", "got False, wanted True."),
        (
            """
def same_everywhere(net):  # running statistics, too
    pairs = [parameter.list_data() for parameter in net.collect_params().values()]
    return all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in pairs)
""",
            "Case 3 of 3",
        ),
        (
            "def same_everywhere(net):\n    return [parameter.name for parameter in net.collect_params().values()]",
            "_bias'",
        ),
    ],
    "bytes-solution": [
        ("def bytes_of_step(parameters, n, kvstore):\n    return 2 * (n - 1) * 4 * parameters  # without the host", "got 407120"),
        ("def bytes_of_step(parameters, n, kvstore):\n    return 2 * n * 4 * parameters  # with itself", "got 814240"),
        (
            """
def bytes_of_step(parameters, n, kvstore):
    return (n - 1 if kvstore == 'device' else n) * 4 * parameters  # one way
""",
            "got 203560",
        ),
    ],
    "accumulate-solution": [
        (
            """
def in_portions(net, trainer, X, y, places, rows):
    train_batch(net, trainer, X[:rows], y[:rows], places)  # the rest is left out
""",
            "got [64, True",
        ),
        (
            """
def in_portions(net, trainer, X, y, places, rows):  # a step for each
    for low in range(0, len(X), rows):
        train_batch(net, trainer, X[low : low + rows], y[low : low + rows], places)
""",
            "got [128, True",
        ),
        ("def in_portions(net, trainer, X, y, places, rows):\n    pass", "it raised ValueError"),
    ],
    "warm-up-solution": [
        ("def rate_at(step, base, n, warm):\n    return base", "got 0.1"),
        ("def rate_at(step, base, n, warm):\n    return base * (1 + (n - 1) * step / warm)  # on and on", "got 7.1"),
        ("def rate_at(step, base, n, warm):\n    return base * n * min(1, step / warm)  # from zero", "got 0.0"),
    ],
}
