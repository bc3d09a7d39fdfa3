"""Appendix A, coming from MXNet: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            """
def to_replace(paths):  # what is otherwise needs no replacing
    return [path for path in paths.split() if differences.find(path)]
""",
            "Case 3 of 4",
        ),
        (
            """
def to_replace(paths):
    return [path for path in paths.split() if differences.find(path).absent]
""",
            "it raised AttributeError",
        ),
        (
            """
def to_replace(paths):  # only what stands in a row itself
    return [path for path in paths.split() if any(path in row.names.split() for row in differences.TABLE if row.absent)]
""",
            "Case 2 of 4",
        ),
    ],
    "solution-2": [
        (
            """
def renamed(arrays, old, new):  # anywhere in the name
    return {name.split(":")[1].replace(old, new): value for name, value in arrays.items() if ":" in name}
""",
            "Case 2 of 3",
        ),
        (
            """
def renamed(arrays, old, new):  # the prefix, and the kind stays
    return {name.replace(f":{old}", f":{new}"): value for name, value in arrays.items()}
""",
            "got ['arg:net_weight 1', 'arg:net_bias 2']",
        ),
        ("def renamed(arrays, old, new):\n    return list(arrays)", "renamed must return a dict"),
        (
            """
def renamed(arrays, old, new):  # strips letters, not a prefix
    found = {name.lstrip("arg:").lstrip("aux:"): value for name, value in arrays.items()}
    return {new + name.removeprefix(old): value for name, value in found.items()}
""",
            "Case 1 of 3",
        ),
    ],
    "solution-3": [
        ("def half_of(x):\n    return x * 0.5", "it raised DTypeError"),
        ("def half_of(x):\n    return x.astype('float32') * 0.5", "Case 3 of 4"),
        (
            """
def half_of(x):  # one kind of integers
    return (x.astype("float32") if x.dtype == np.int32 else x) / 2
""",
            "Case 4 of 4",
        ),
    ],
    "solution-4": [
        (
            """
def first_difference(recorded, now):  # each value by its own size
    for name, value in recorded.items():
        if name not in now or now[name].shape != value.shape or not np.allclose(now[name], value, 1e-3, 0):
            return name
    return ""
""",
            "Case 2 of 6",
        ),
        (
            """
def first_difference(recorded, now):  # a comparison with NaN is false
    for name, value in recorded.items():
        if name not in now or now[name].shape != value.shape:
            return name
        if (np.abs(now[name] - value) > 1e-3 * np.abs(value).max()).any():
            return name
    return ""
""",
            "Case 6 of 6",
        ),
        (
            """
def first_difference(recorded, now):  # what is missing raises
    for name, value in recorded.items():
        if now[name].shape != value.shape or not (np.abs(now[name] - value) <= 1e-3 * np.abs(value).max()).all():
            return name
    return ""
""",
            "it raised KeyError",
        ),
        (
            """
def first_difference(recorded, now):  # shapes are not looked at
    for name, value in recorded.items():
        if name not in now or not (np.abs(now[name] - value) <= 1e-3 * np.abs(value).max()).all():
            return name
    return ""
""",
            "Case 5 of 6",
        ),
    ],
}
