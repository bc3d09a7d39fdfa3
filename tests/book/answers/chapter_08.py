"""Chapter 8, hardware: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "batch-solution": [
        ("def smallest_batch(n, corner):\n    return int(2 * corner) + 1  # as if the batch were small", "got 35"),
        (
            """
def smallest_batch(n, corner):
    return int(2 * corner * n / (n - 4 * corner)) if n > 4 * corner else 0  # rounded down
""",
            "got 10",
        ),
        (
            """
def smallest_batch(n, corner):
    return int(2 * corner * n / (n - 4 * corner)) + 1  # one too many where it fits
""",
            "got 51",
        ),
    ],
    "fused-solution": [
        ("def moved_bytes(k, n):\n    return [8 * n, 8 * n]", "got [8000, 8000]"),
        ("def moved_bytes(k, n):\n    return [k * 4 * n, 4 * n]  # without reading", "got [4000, 4000]"),
        ("def moved_bytes(k, n):\n    return [8 * k * n, 8 * k * n]  # nothing is saved", "got [16000, 16000]"),
    ],
    "what-solution": [
        ("def bound_by(flop, nbytes, device):\n    return 'memory'", "got 'memory'"),
        ("def bound_by(flop, nbytes, device):\n    return 'overhead'", "got 'overhead'"),
        (
            """
def bound_by(flop, nbytes, device):
    return 'arithmetic' if flop / device.flops > nbytes / device.bandwidth else 'memory'  # no overhead
""",
            "got 'arithmetic'",
        ),
    ],
    "half-type-solution": [
        ("def speed_up(flop, nbytes, peak, bandwidth):\n    return 1.0", "got 1.0"),
        (
            """
def speed_up(flop, nbytes, peak, bandwidth):
    return 2 if flop / nbytes < peak / bandwidth else 1  # no between
""",
            "got 2",
        ),
        (
            """
def speed_up(flop, nbytes, peak, bandwidth):
    return predict(flop, nbytes / 2, peak, bandwidth) / predict(flop, nbytes, peak, bandwidth)
""",
            "got 0.5",
        ),
    ],
}
