"""Chapter 15, the museum of bugs: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "variance-answer": [
        ("def predict(dtype):\n    return np.finfo(dtype).nmant + 1  # that of the numbers", "got 24"),
        ("def predict(dtype):\n    return np.finfo(dtype).nmant // 2", "got 11"),
        ("def predict(dtype):\n    return 4096  # the number, not its power", "got 4096"),
    ],
    "index-answer": [
        ("def predict(place):\n    return 0  # always exact", "got 0"),
        ("def predict(place):\n    return int(place > edge)  # up, always", "got 1"),
        ("def predict(place):\n    return -(place % 2) * (place > edge)  # down, always", "got -1"),
    ],
    "batch-answer": [
        ("def predict(images, batch):\n    return True  # never", "Case 2 of 6"),
        ("def predict(images, batch):\n    return images % batch == 0  # only whole batches", "Case 3 of 6"),
        ("def predict(images, batch):\n    return images % batch != 1  # and batches of one?", "Case 6 of 6"),
    ],
    "means-answer": [
        ("def predict(long, short):\n    return 1  # all alike", "got 1"),
        ("def predict(long, short):\n    return short / long  # the other way", "got 0.25"),
        ("def predict(long, short):\n    return (long / short) ** 2", "got 16.0"),
    ],
    "adam-answer": [
        ("def predict(t):\n    return 1.0  # the rate", "got 1.0"),
        ("def predict(t):\n    return 3 * (1 - 0.9**t) / math.sqrt(1 - 0.999**t)  # with the 3", "got 9.4868"),
        ("def predict(t):\n    return (1 - 0.9**t) / (1 - 0.999**t)  # without the root", "got 100.0"),
    ],
    "trace-answer": [
        ("def predict(example, x):\n    return f(x)  # no trace", "got 5"),
        ("def predict(example, x):\n    return f(example)  # the example's answer", "got 6"),
        ("def predict(example, x):\n    return x * 2 if example >= 0 else x * -1  # zero", "got 2"),
    ],
    "alias-answer": [
        ("def predict(n):\n    return n + 1, 1  # what is right", "got (2, 1)"),
        ("def predict(n):\n    return 2.0**n, 1.0  # y apart", "got (2.0, 1.0)"),
        ("def predict(n):\n    return n + 1, n + 1  # one array, but added to once", "got (3, 3)"),
    ],
    "fifth-answer": [
        ("def predict(before, count, request):\n    return count  # no add", "got 4"),
        ("def predict(before, count, request):\n    return count + before * (request == 'add')  # what is right", "got 5"),
        (
            "def predict(before, count, request):\n    return count if request == 'write' else before + count + 4 * (count > 4)",
            "got 19",
        ),
    ],
    "clock-answer": [
        ("def predict(wait_before, wait_after):\n    return 15.01  # the work", "Case 1 of 4"),
        (
            "def predict(wait_before, wait_after):\n    return 15.01 if wait_after else 0.03  # without the others",
            "got 15.01, wanted 115.0.",
        ),
        (
            "def predict(wait_before, wait_after):\n    return 15.03 if wait_after else 0.03  # calls and work in turn",
            "got 15.03, wanted 115.0.",
        ),
    ],
    "reader-answer": [
        ("def predict(readers):\n    return 1  # one, as if in order", "got 1"),
        ("def predict(readers):\n    return math.factorial(readers + 1)  # all orders", "got 6"),
        ("def predict(readers):\n    return readers + 1  # how many come before", "got 3"),
    ],
    "freed-answer": [
        ("def predict(spare, newest_first, takes):\n    return 1  # no harm", "got 1"),
        ("def predict(spare, newest_first, takes):\n    return 1 + takes  # the last", "got 3"),
        ("def predict(spare, newest_first, takes):\n    return 2 if takes else 1  # always the first take", "got 2"),
    ],
    "child-answer": [
        ("def predict(workers, images, epochs):\n    return images * epochs  # all", "got 12"),
        ("def predict(workers, images, epochs):\n    return images // workers  # rounded down", "got 2"),
        ("def predict(workers, images, epochs):\n    return math.ceil(images / workers) * epochs  # new in each epoch", "got 30"),
    ],
    "solution-1": [
        (
            "def dropout(x, rate, draw, *, training):\n    return x * (draw.random(x.shape) >= rate) / (1 - rate)  # always",
            "got '0.5 are zero, the mean is 1.0'",
        ),
        (
            "def dropout(x, rate, draw, *, training):\n    return x * (draw.random(x.shape) >= rate) if training else x",
            "got '0.5 are zero, the mean is 0.5'",
        ),
        (
            "def dropout(x, rate, draw, *, training):\n    return x * (draw.random(x.shape) < rate) / rate if training else x",
            "got '0.8 are zero, the mean is 1.0'",
        ),
    ],
    "solution-2": [
        (
            """
class Workers:  # never again, also after the next backward
    added = False

    def backward(self):
        self.gradients = [1.0, 2.0, 3.0]

    def sync(self):
        if not self.added:
            self.gradients, self.added = [sum(self.gradients)] * 3, True

    def step(self):
        self.sync()
        return self.gradients[0]
""",
            "got [6.0, 1.0]",
        ),
        (
            """
class Workers:  # a step that does not add up
    def backward(self):
        self.gradients = [1.0, 2.0, 3.0]

    def sync(self):
        self.gradients = [sum(self.gradients)] * 3

    def step(self):
        return self.gradients[0]
""",
            "got [1.0]",
        ),
        (
            """
class Workers:  # means
    def backward(self):
        self.gradients = [1.0, 2.0, 3.0]

    def sync(self):
        self.gradients = [sum(self.gradients) / 3] * 3

    def step(self):
        self.sync()
        return self.gradients[0]
""",
            "got [2.0]",
        ),
    ],
    "solution-3": [
        ("def scores():\n    return [[100.0, 0.0], [0.0, 0.0]]", "got False"),
        ("def scores():\n    return [200.0, 0.0]  # one axis", "scores must return an array with two axes"),
        ("def scores():\n    return [[math.inf, 0.0], [0.0, -1.0]]  # not finite", "the right one must be finite"),
    ],
    "solution-4": [
        ("def first_wrong_version(n, is_wrong):\n    return n  # the last", "got 8"),
        (
            """
def first_wrong_version(n, is_wrong):  # the last right one
    right, wrong = 0, n
    while wrong - right > 1:
        middle = (right + wrong) // 2
        right, wrong = (right, middle) if is_wrong(middle) else (middle, wrong)
    return right
""",
            "got 0",
        ),
        (
            """
def first_wrong_version(n, is_wrong):  # from behind
    while is_wrong(n - 1):
        n -= 1
    return n
""",
            "8 questions; 3 suffice",
        ),
    ],
}
