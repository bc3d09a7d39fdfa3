"""Chapter 6, export: wrong answers, and what a reader is told."""

ALSO = ("export",)  # its files are read, which no name tells

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            """
def file_size(shapes):
    return sum(4 * math.prod(shape) for shape in shapes.values())  # the numbers alone
""",
            "got 4",
        ),
        (
            """
def file_size(shapes):
    return 32 + sum(24 + 8 * len(s) + 4 * math.prod(s) for s in shapes.values())  # without names
""",
            "got 68",
        ),
        (
            """
def file_size(shapes):
    return 32 + sum(32 + 8 * len(s) + 8 * math.prod(s) + len(n) for n, s in shapes.items())  # eight bytes a number
""",
            "got 81",
        ),
    ],
    "solution-2": [
        (
            """
def depth(text):
    return sum(node['op'] != 'null' for node in json.loads(text)['nodes'])  # all operators
""",
            "got 7",
        ),
        ("def depth(text):\n    return len(json.loads(text)['nodes'])  # and variables", "got 9"),
        (
            """
def depth(text):  # one too many
    graph, depths = json.loads(text), []
    for node in graph['nodes']:
        depths.append(1 + max([depths[each[0]] for each in node['inputs']], default=0))
    return depths[graph['heads'][0][0]]
""",
            "got 5",
        ),
    ],
    "solution-3": [
        ("def whole_arrays(blob):\n    return 4  # all", "got 4"),
        ("def whole_arrays(blob):  # from the wrong place\n    return read_array(blob, 0)[1]", "got 28"),
        (
            """
def whole_arrays(blob):  # errors are not caught
    at = 24
    for count in range(4):
        _, at = read_array(blob, at)
    return 4
""",
            "it raised ValueError",
        ),
    ],
    "solution-4": [
        ("def halved(blob):\n    return nd.load_frombuffer(blob)  # arrays", "halved must return bytes"),
        ("def halved(blob):\n    return blob[: len(blob) // 2]  # half of the bytes, indeed", "it raised FileFormatError"),
        (
            """
def halved(blob):  # zeros
    half = {name: array.astype('float16') * 0 for name, array in nd.load_frombuffer(blob).items()}
    nd.save('zeros.params', half)
    with open('zeros.params', 'rb') as file:
        return file.read()
""",
            "got [[0.5, 0.5]]",
        ),
    ],
}
