"""Chapter 4, hybridize: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        ("def runs_and_programs(calls):\n    return len(calls), len(calls)  # no cache", "got (4, 4)"),
        ("def runs_and_programs(calls):\n    return 1, len(set(calls))  # one trace for both modes", "got (1, 3)"),
        ("def runs_and_programs(calls):\n    return len(set(calls)), len(set(calls))  # a trace for each shape", "got (3, 3)"),
    ],
    "solution-2": [
        ("def clipped(F, x):\n    return F.clip(x, -1, 1)  # always", "got [[-1.0, 1.0], [-1.0, 1.0]]"),
        ("def clipped(F, x):\n    return F.clip(x, -1, 1) if x.mean() > 0 else x", "it raised NotImplementedForSymbol"),
        (
            "def clipped(F, x):\n    return F.where(x > 0, F.clip(x, -1, 1), x)  # element by element",
            "got [[1.0, -2.0], [1.0, -2.0]]",
        ),
    ],
    "solution-3": [
        ("def different(head):\n    return len(in_order(head, []))  # a number", "different must return a list"),
        (
            """
def different(head):  # by the operation alone
    return list({node.op: node for node in in_order(head, [])}.values())
""",
            "got 4",
        ),
        (
            """
def different(head):  # the variables are missing
    return [node for node in in_order(head, []) if node.op != 'variable']
""",
            "got 9",
        ),
    ],
    "solution-4": [
        ("def largest_so_far(F, x):\n    return x.max(axis=0, keepdims=True)", "got [[1.6637, 0.6591]]"),
        (
            """
def largest_so_far(F, x):  # not compared with those before
    return F.contrib.foreach(lambda row, state: (F.maximum(row, state), state), x, x.min(axis=0))[0]
""",
            "got -1.6414 at [2, 0], where they differ most",
        ),
        (
            "def largest_so_far(F, x):\n    return F.broadcast_maximum(x, x.max(axis=0, keepdims=True))",
            "got [[1.6637, 0.6591], [1.6637, 0.6591]]",
        ),
    ],
}
