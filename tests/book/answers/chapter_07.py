"""Chapter 7, automatic parallelism: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "fewer-solution": [
        (
            "def fewer(program):\n    return [{i - 1} if i else set() for i in range(len(program))]  # a line",
            "got '[[], [0], [1], [2]]'",
        ),
        ("def fewer(program):\n    return [set() for _ in program]", "got '[[], [], [], []]'"),
        ("def fewer(program):\n    return all_before(program)  # more", "got '[[], [0], [0, 1], [0, 1, 2]]'"),
    ],
    "best-pieces-solution": [
        ("def shortest(compute, travel, latency):\n    return max(compute, travel) + latency  # a perfect overlap", "got 42"),
        (
            """
def shortest(compute, travel, latency):
    return compute / 2 + max(compute, travel) / 2 + travel / 2 + 2 * latency  # two pieces
""",
            "got 64.0",
        ),
        (
            """
def shortest(compute, travel, latency):  # latency is paid once
    return min(compute / k + travel / k + (k - 1) * max(travel, compute) / k + latency for k in range(1, 100))
""",
            "got 42.404",
        ),
    ],
    "look-solution": [
        (
            """
def watched(steps, arrays):  # all at the end
    for step in steps:
        for y in arrays:
            engine.push(step, writes=[y])
    return [float(arrays[0])] * len(steps)
""",
            "got [2.0, 2.0]",
        ),
        ("def watched(steps, arrays):  # no numbers\n    return [0.0 for _ in steps]", "got [0.0, 0.0]"),
        ("def watched(steps, arrays):\n    return []", "got an array of shape (0,)"),
    ],
    "front-solution": [
        (
            """
def with_front_end(program, ms):
    return [step._replace(ms=ms) for step in program]  # nothing but pushes
""",
            "got 4.0",
        ),
        (
            """
def with_front_end(program, ms):  # a push and its step are not tied
    return [each for step in program for each in (Step('push', 'front end', ms), step)]
""",
            "got 20.0",
        ),
        (
            """
def with_front_end(program, ms):  # pushed before the first
    return [Step('push', 'front end', ms * len(program), writes=('all',)), *(s._replace(reads=(*s.reads, 'all')) for s in program)]
""",
            "got 24.0",
        ),
    ],
}
