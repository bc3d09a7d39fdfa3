"""Chapter 3, imperative and symbolic: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        ("def horner(coefficients):\n    return 'def p(x):\\n    return 0'", "got (0, 0)"),
        (
            """
def horner(coefficients):  # powers
    terms = [f'{each} * x ** {power}' for power, each in enumerate(coefficients)]
    return 'def p(x):\\n    return ' + ' + '.join(terms)
""",
            "got (1.75, 19)",
        ),
        ("def horner(coefficients):\n    return lambda x: x  # no text", "horner must return a text"),
    ],
    "solution-2": [
        (
            """
RULES['sin'] = lambda g, y, a: (g * Node('cos', a),)
RULES.pop('cos', None)  # of a solution that ran before
""",
            "RULES has no rule for cos",
        ),
        (
            """
RULES['sin'] = lambda g, y, a: (g * Node('cos', a),)
RULES['cos'] = lambda g, y, a: (g * Node('sin', a),)  # the sign
""",
            "got 0.4794, wanted -0.4794.",
        ),
        ("RULES['sin'] = lambda g, y, a: (g * Node('sin', a),)", "Case 1 of 3"),
    ],
    "solution-3": [
        ("def shape_of(head, shapes):\n    return ()", "got an array of shape (0,)"),
        ("def shape_of(head, shapes):\n    return shapes['a']", "got (4, 1)"),
        ("def shape_of(head, shapes):\n    return tuple(max(sizes) for sizes in zip(*shapes.values()))", "got (4,)"),
    ],
    "solution-4": [
        ("def fold(head):\n    return write('p', 'x', [head])  # a text", "fold must return a Node"),
        ("def fold(head):\n    return Node('x')", "got \"(0, [-0.0, 2.5, -1.0], '-0.0')\""),
        (
            """
def fold(head):  # drops sums with zero
    return next((each for each in head.inputs if each.name != '0.0'), head) if head.name == 'add' else head
""",
            "got \"(2, [-0.0, 12.5, -5.0], '-0.0')\"",
        ),
    ],
}
