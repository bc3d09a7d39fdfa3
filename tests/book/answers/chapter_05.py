"""Chapter 5, inside a program: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        ("def more_twins(graph):\n    return 2 * twins(graph)", "got 0"),
        (
            """
def more_twins(graph):  # all operators commute
    first, same = {}, {}
    for node in graph.order:
        inputs = sorted([same.get(e, e) for e in node.inputs], key=lambda e: (id(e[0]), e[1]))
        same[node, 0] = first.setdefault((node.op, tuple(inputs)), node), 0
    return len(graph.order) - len(first)
""",
            "got 1",
        ),
        ("def more_twins(graph):\n    return len([node for node in graph.order if node.op.name in COMMUTE])", "got 3"),
    ],
    "solution-2": [
        ("def handed_over(functions):\n    return len(functions)  # each", "got 2, wanted 1."),
        ("def handed_over(functions):\n    return 0", "got 0, wanted 1."),
        (
            """
def handed_over(functions):  # the input and the result, too
    needed = set()
    for number, each in enumerate(functions):
        if each != 'negative':
            needed.add(number + (each in ('tanh', 'exp')))
    return len(needed)
""",
            "Case 2 of 4",
        ),
    ],
    "solution-3": [
        ("def written(sequence):\n    return len(sequence) - 1", "Case 1 of 4"),
        (
            """
def written(sequence):  # whatever the size
    both = [{a[0], b[0]} <= ELEMENTWISE for a, b in itertools.pairwise(sequence)]
    return len(sequence) - sum(both)
""",
            "Case 2 of 4",
        ),
        (
            """
def written(sequence):  # whatever the operator
    both = [a[1] == b[1] >= 32768 for a, b in itertools.pairwise(sequence)]
    return len(sequence) - sum(both)
""",
            "Case 3 of 4",
        ),
    ],
    "solution-4": [
        ("def place(lives):\n    return [0] * len(lives)", "got 'a and b share bytes'"),
        ("def place(lives):\n    return [0]", "place must return 5 offsets from 0, not [0]"),
        (
            """
def place(lives):  # the largest first, as the library
    offsets = {}
    for i in sorted(range(len(lives)), key=lambda i: -lives[i][2]):
        low = 0
        for j in sorted(offsets, key=offsets.get):
            if lives[j][0] <= lives[i][1] and lives[i][0] <= lives[j][1]:
                if low + lives[i][2] <= offsets[j]:
                    break
                low = max(low, offsets[j] + lives[j][2])
        offsets[i] = low
    return [offsets[i] for i in range(len(lives))]
""",
            "got '1216 bytes; arrange 1216, at least 1152'",
        ),
    ],
}
