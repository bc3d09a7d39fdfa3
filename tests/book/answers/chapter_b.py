"""Appendix B, coming from PyTorch: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        ("def batchnorm_arguments(eps, momentum):\n    return eps, 1 - momentum  # None, too", "it raised TypeError"),
        ("def batchnorm_arguments(eps, momentum):\n    return 1 - momentum, eps  # in the other order", "got '0.9 and 0.01'"),
        ("def batchnorm_arguments(eps, momentum):\n    return eps, 0.9  # the default", "got '0.001 and 0.9'"),
    ],
    "solution-2": [
        (
            """
def gluon_names(names):  # every weight is taken for a BatchNorm's
    new = {"weight": "gamma", "bias": "beta"}
    split = [name.rpartition(".") for name in names if "num" not in name]
    return [f"{layer}.{new.get(last, last)}" for layer, _, last in split]
""",
            "got ['0.gamma', '0.beta']",
        ),
        (
            """
def gluon_names(names):  # batches are counted
    new = {"weight": "gamma", "bias": "beta"}
    found = []
    for name in names:
        layer, _, last = name.rpartition(".")
        found.append(f"{layer}.{new.get(last, last) if f'{layer}.running_mean' in names else last}")
    return found
""",
            "'bn.running_var', 'bn.num_batches_tracked'], wanted",
        ),
        (
            """
def gluon_names(names):  # split at the first dot
    new, found = {"weight": "gamma", "bias": "beta"}, []
    for name in names:
        layer, _, last = name.partition(".")
        if last != "num_batches_tracked":
            found.append(f"{layer}.{new.get(last, last) if f'{layer}.running_mean' in names else last}")
    return found
""",
            "Case 3 of 3",
        ),
    ],
    "solution-3": [
        (
            """
def mean_gradient(w, batches):  # the mean of means
    w.attach_grad("add")
    for X, y in batches:
        with autograd.record():
            loss = d2l.squared_loss(nd.dot(X, w), y).mean()
        loss.backward()
    return w.grad / len(batches)
""",
            "Case 3 of 3",
        ),
        (
            """
def mean_gradient(w, batches):  # the sum
    w.attach_grad("add")
    for X, y in batches:
        with autograd.record():
            loss = d2l.squared_loss(nd.dot(X, w), y)
        loss.backward()
    return w.grad
""",
            "Case 1 of 3",
        ),
        (
            """
def mean_gradient(w, batches):  # the last batch only
    w.attach_grad()
    for X, y in batches:
        with autograd.record():
            loss = d2l.squared_loss(nd.dot(X, w), y)
        loss.backward()
    return w.grad / sum(len(y) for _, y in batches)
""",
            "Case 2 of 3",
        ),
    ],
    "solution-4": [
        ("def factor(old, new):\n    return old / new", "got -9.0677 at [9]"),
        ("def factor(old, new):\n    return 0.0  # a fresh start", "Case 1 of 3"),
        ("def factor(old, new):\n    return new  # the new rate", "old = 0.1, new = 0.1: got "),
    ],
}
