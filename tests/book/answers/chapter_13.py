"""Chapter 13, write your own backend: wrong answers, and what a reader is told."""

ALSO = ("upper",)  # a backend, which is asked for by its name as a string

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            """
def borders(edges, part):  # a name for each edge
    inputs = [a for a, b in edges if b in part and a not in part]
    outputs = [a for a, b in edges if a in part and b not in part]
    return sorted(inputs), sorted(outputs)
""",
            "got 'c d -> ', wanted 'c d -> f'",
        ),
        (
            """
def borders(edges, part):  # whoever is at the border, on whichever side
    inputs = {b for a, b in edges if b in part and a not in part}
    outputs = {a for a, b in edges if a in part and b not in part}
    return sorted(inputs), sorted(outputs)
""",
            "got 'a -> b d', wanted 'x -> b d'",
        ),
        (
            """
def borders(edges, part):  # the values that come out of the part, and all that is made in it
    inputs = {a for a, b in edges if b in part and a not in part}
    return sorted(inputs), sorted(part)
""",
            "got 'x -> a b d'",
        ),
    ],
    "solution-2": [
        ("def trap(edges):\n    return {'a'}, {'b'}", "together True"),
        (
            """
def trap(edges):  # not convex
    names = sorted({name for edge in edges for name in edge})
    for one in itertools.combinations(names, 2):
        if not runs(edges, [set(one)]):
            return set(one), set(names) - set(one)
""",
            "alone [False, True]",
        ),
        ("def trap(edges):\n    return {'a', 'd'}, {'a', 'c'}", "['a'] would be in both parts"),
    ],
    "solution-3": [
        (
            """
def collapse(chain):  # as if addends were not multiplied
    factor, addend = 1.0, 0.0
    for name, number in chain:
        factor *= number if name == "_mul_scalar" else -1 if name == "_rminus_scalar" else 1
        addend += {"_plus_scalar": number, "_minus_scalar": -number, "_rminus_scalar": number}.get(name, 0)
    return factor, addend
""",
            "Case 2 of 4",
        ),
        (
            """
def collapse(chain):  # x - 3 for 3 - x
    factor, addend = 1.0, 0.0
    for name, number in chain:
        if name == "_mul_scalar":
            factor, addend = factor * number, addend * number
        else:
            addend += number if name == "_plus_scalar" else -number
    return factor, addend
""",
            "Case 3 of 4",
        ),
        ("def collapse(chain):\n    return sum(number for _, number in chain)", "got 5, wanted (2, 3)"),
    ],
    "solution-4": [
        (
            "def keeping(prepare):\n    return lambda array: prepare(array.copy())  # each time, though with care",
            "got [1.0, 1.0, 1.0, 3]",
        ),
        (
            """
def keeping(prepare):  # no copy
    kept = []

    def call(array):
        if not kept or not np.array_equal(kept[0], array):
            kept[:] = array, prepare(array)
        return kept[1]

    return call
""",
            "got [1.0, 1.0, 1.0, 1]",
        ),
        (
            """
def keeping(prepare):  # nan is not equal to nan
    kept = []

    def call(array):
        if not kept or not np.array_equal(kept[0], array):
            kept[:] = array.copy(), prepare(array)
        return kept[1]

    return call
""",
            "Case 3 of 3",
        ),
    ],
    "solution-5": [
        (
            """
def fold_before(weight, bias, gamma, beta, mean, variance, eps):  # the addend does not go through the weights
    scale = gamma / np.sqrt(variance + eps)
    return weight * scale, bias + (beta - mean * scale).sum()
""",
            "Case 1 of 2",
        ),
        (
            """
def fold_before(weight, bias, gamma, beta, mean, variance, eps):  # scales the results
    scale = gamma / np.sqrt(variance + eps)
    return weight * scale[:, None], bias + weight @ (beta - mean * scale)
""",
            "it raised ValueError in `return weight * scale[:, None]",
        ),
        (
            """
def fold_before(weight, bias, gamma, beta, mean, variance, eps):  # mean is not scaled
    scale = gamma / np.sqrt(variance + eps)
    return weight * scale, bias + weight @ (beta - mean)
""",
            "Case 1 of 2",
        ),
    ],
}
