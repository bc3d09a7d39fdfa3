"""The preface: wrong answers to its two exercises, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            "def reading_list(plan, number):\n    return list(range(1, number))  # all before it",
            "number = 9: got an array of shape (8,)",
        ),
        (
            """
def reading_list(plan, number):  # with itself
    found = {number}
    for each in plan[number]:
        found.update(reading_list(plan, each))
    return sorted(found)
""",
            "got [1, 2], wanted [1]",
        ),
        (
            """
def reading_list(plan, number):  # twice what is needed twice
    found = list(plan[number])
    for each in plan[number]:
        found += reading_list(plan, each)
    return sorted(found)
""",
            "got [1, 1, 2, 7], wanted [1, 2, 7]",
        ),
    ],
    "solution-2": [
        (
            """
def call_and_element(sizes, times):  # the other way round
    b = (times[1] - times[0]) / (sizes[1] - sizes[0])
    return b, times[0] - b * sizes[0]
""",
            "got (0.005, 0.5), wanted (0.5, 0.005)",
        ),
        (
            """
def call_and_element(sizes, times):  # the first time is all call
    return times[0], (times[1] - times[0]) / (sizes[1] - sizes[0])
""",
            "got (1.0, 0.005), wanted (0.5, 0.005)",
        ),
        (
            """
def call_and_element(sizes, times):  # a difference of sizes without its sign
    b = (times[1] - times[0]) / abs(sizes[1] - sizes[0])
    return times[0] - b * sizes[0], b
""",
            "Case 3 of 3",
        ),
    ],
}
