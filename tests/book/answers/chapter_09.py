"""Chapter 9, several GPUs from scratch: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "mean-solution": [
        ("def whole_gradient(gradients, sizes):\n    return np.sum(gradients, axis=0)  # the sum", "got [6.0, 2.0]"),
        (
            """
def whole_gradient(gradients, sizes):
    return np.array(sizes) @ np.array(gradients) / len(sizes)  # divided by the devices
""",
            "got [15.0, 5.0]",
        ),
        ("def whole_gradient(gradients, sizes):\n    return gradients[0]", "got [2.0, 0.0]"),
    ],
    "scatter-solution": [
        (
            """
def reduce_scatter(table):
    n = len(table)
    return [((d - 1) % n, sum(row[(d - 1) % n] for row in table)) for d in range(n)]
""",
            "got [(2, 333), (0, 111), (1, 222)]",
        ),
        (
            """
def reduce_scatter(table):
    n = len(table)
    return [((d + 1) % n, sum(row[d] for row in table)) for d in range(n)]
""",
            "got [(1, 11), (0, 22)]",
        ),
        ("def reduce_scatter(table):\n    return [sum(row[d] for row in table) for d in range(len(table))]", "got [11, 22]"),
    ],
    "best-way-solution": [
        ("def best_way(n, kB, latency, bandwidth):\n    return 'tree'", "got 'tree'"),
        (
            "def best_way(n, kB, latency, bandwidth):\n    return 'place' if n == 2 else 'tree' if kB < 10 else 'ring'",
            "got 'place'",
        ),
        ("def best_way(n, kB, latency, bandwidth):\n    return 'tree' if kB / bandwidth < latency else 'ring'", "got 'ring'"),
    ],
    "shares-solution": [
        ("def shares(batch, speeds):\n    return [batch * speed / sum(speeds) + 1 for speed in speeds]", "got [129.0, 129.0]"),
        ("def shares(batch, speeds):\n    return [batch // sum(speeds)] * len(speeds)", "got [80, 80]"),
        (
            """
def shares(batch, speeds):
    return [batch / speed / sum(1 / each for each in speeds) for speed in speeds]  # the other way
""",
            "got [160.0, 80.0]",
        ),
    ],
}
