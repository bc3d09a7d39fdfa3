"""Chapter 11, parameter servers, rings, clusters: wrong answers, and what a reader is told."""

NEVER = ("mpi-run", "mpi-check", "alone", "death", "death-check")  # other processes

WRONG: dict[str, list[tuple[str, str]]] = {
    "keys-solution": [
        ("def fullest(sizes, s):\n    return max(sizes)", "got 4"),
        ("def fullest(sizes, s):\n    return sum(sizes) / s  # as if keys were cut", "got 5.0"),
        (
            """
def fullest(sizes, s):  # dealt in turn
    largest_first = sorted(sizes, reverse=True)
    return max(sum(largest_first[i::s]) for i in range(s))
""",
            "got 7",
        ),
        (
            """
def fullest(sizes, s):  # as they come
    loads = [0] * s
    for size in sizes:
        loads[loads.index(min(loads))] += size
    return max(loads)
""",
            "got 8, wanted 6",
        ),
    ],
    "crossing-solution": [
        ("def where_trees_win(m, name):\n    return 4", "got 4"),
        (
            """
def where_trees_win(m, name):  # by latency alone
    n = 2
    while math.log2(n) >= n - 1:
        n *= 2
    return 2 * n
""",
            "got 8",
        ),
        (
            """
def where_trees_win(m, name):  # not a power of two
    n, link = 2, simulate.LINKS[name]
    while tree_seconds(n, m, link) >= ring_seconds(n, m, link):
        n += 1
    return n
""",
            "got 105",
        ),
    ],
    "hierarchy-solution": [
        (
            """
def hierarchical_seconds(nodes, g, m, inner, network):
    # all bytes over a part of the link
    return ring_seconds(g, m, inner) + g * ring_seconds(nodes, m, network)
""",
            "got 160.8767",
        ),
        (
            """
def hierarchical_seconds(nodes, g, m, inner, network):
    return ring_seconds(nodes, m / g, network)  # nothing inside
""",
            "got 40.1",
        ),
        (
            """
def hierarchical_seconds(nodes, g, m, inner, network):
    # each has the whole link
    return ring_seconds(g, m, inner) + ring_seconds(nodes, m / g, network)
""",
            "got 40.7767",
        ),
    ],
    "bits-solution": [
        ("def gain(n, s, m, link):\n    return 1.0", "got 1.0"),
        (
            """
def gain(n, s, m, link):
    return server_seconds(n, m, link, s) / server_seconds(n, m / 16, link, s)  # back, too
""",
            "got 15.8515",
        ),
        ("def gain(n, s, m, link):\n    return 32 / 17  # without latency", "got 1.8824"),
    ],
}
