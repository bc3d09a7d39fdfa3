"""Chapter 2, asynchronous and lazy: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            "def mean_loss(losses):\n    return sum(float(loss) for loss in losses) / len(losses)  # a number",
            "mean_loss must return an NDArray",
        ),
        ("def mean_loss(losses):\n    return nd.add_n(*losses)  # the sum", "got [False, 3000.0]"),
        (
            """
def mean_loss(losses):
    nd.waitall()
    return nd.add_n(*losses) / len(losses)
""",
            "got [True, 1000.0]",
        ),
    ],
    "solution-2": [
        ("def shortest_time(program):\n    return len(program)  # one after the other", "got 2"),
        ("def shortest_time(program):\n    return 1  # all at once", "got 1"),
        (
            """
def shortest_time(program):  # reads wait for reads
    used = [0] * 8
    for cells in program:
        end = 1 + max(used[cell] for cell in cells)
        for cell in cells:
            used[cell] = end
    return max(used)
""",
            "got 3",
        ),
    ],
    "solution-3": [
        (
            """
def run_ahead(steps, ahead):  # waits for the youngest
    pending = []
    for step in steps:
        if len(pending) == ahead:
            pending.pop().wait_to_read()
        pending.append(step())
    for array in pending:
        array.wait_to_read()
""",
            "got 'call 0, call 1, wait 1, call 2, wait 0, wait 2'",
        ),
        (
            """
def run_ahead(steps, ahead):  # one too many
    pending = []
    for step in steps:
        pending.append(step())
        if len(pending) > ahead:
            pending.pop(0).wait_to_read()
    for array in pending:
        array.wait_to_read()
""",
            "got 'call 0, call 1, call 2, wait 0, wait 1, wait 2'",
        ),
        (
            """
def run_ahead(steps, ahead):  # the rest is forgotten
    pending = []
    for step in steps:
        if len(pending) == ahead:
            pending.pop(0).wait_to_read()
        pending.append(step())
""",
            "got 'call 0, call 1'",
        ),
    ],
    "solution-4": [
        ("def needed(program, wanted):\n    return wanted  # a text", "needed must return a list"),
        ("def needed(program, wanted):\n    return [wanted]  # without its sources", "got 'c'"),
        (
            """
def needed(program, wanted):  # from behind
    names, kept = {wanted}, []
    for name, *sources in reversed(program):
        if name in names:
            kept.append(name)
            names.update(sources)
    return kept
""",
            "got 'c a'",
        ),
    ],
}
