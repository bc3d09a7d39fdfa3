"""Chapter 12, a case study: wrong answers, and what a reader is told."""

WRONG: dict[str, list[tuple[str, str]]] = {
    "solution-1": [
        (
            """
def conv_flops(data, channels, kernel, stride):  # a multiplication and an addition as one
    batch, inputs, *lengths = data
    counts = [(n + 2 * (kernel // 2) - kernel) // stride + 1 for n in lengths]
    return batch * channels * math.prod(counts) * inputs * kernel**2
""",
            "got 12845056, wanted 25690112",
        ),
        (
            """
def conv_flops(data, channels, kernel, stride):  # without padding
    batch, inputs, *lengths = data
    counts = [(n - kernel) // stride + 1 for n in lengths]
    return 2 * batch * channels * math.prod(counts) * inputs * kernel**2
""",
            "Case 2 of 4",
        ),
        (
            """
def conv_flops(data, channels, kernel, stride):  # rounds the wrong way
    return 2 * math.prod(data) * channels * kernel**2 // stride**2
""",
            "Case 4 of 4",
        ),
    ],
    "solution-2": [
        (
            """
def whole_gain(times, factors):  # the mean of the factors
    return sum(factors.get(name, 1) for name in times) / len(times)
""",
            "got 1.6667, wanted 1.0204",
        ),
        (
            """
def whole_gain(times, factors):  # weighted by the times before
    return sum(ms * factors.get(name, 1) for name, ms in times.items()) / sum(times.values())
""",
            "got 1.06, wanted 1.0204",
        ),
        (
            """
def whole_gain(times, factors):  # what does not change is forgotten
    after = sum(times[name] / factor for name, factor in factors.items())
    return sum(times.values()) / after
""",
            "got 100",
        ),
    ],
    "solution-3": [
        (
            """
def least_time(operators, per_flop, per_byte):  # one after the other
    return sum(f * per_flop + b * per_byte for f, b in operators)
""",
            "got 120, wanted 100",
        ),
        (
            """
def least_time(operators, per_flop, per_byte):  # one bottleneck for all
    return max(sum(f for f, _ in operators) * per_flop, sum(b for _, b in operators) * per_byte)
""",
            "Case 3 of 3",
        ),
        (
            """
def least_time(operators, per_flop, per_byte):  # the shorter of the two
    return sum(min(f * per_flop, b * per_byte) for f, b in operators)
""",
            "got 20, wanted 100",
        ),
    ],
    "solution-4": [
        (
            """
def most_bytes(lines):  # the largest pair of neighbours
    sizes = [nbytes for _, _, nbytes in lines]
    return max(a + b for a, b in zip(sizes, sizes[1:]))
""",
            "Case 3 of 3",
        ),
        (
            """
def most_bytes(lines):  # frees what a line reads before its result has its memory
    last = {name: i for i, (_, reads, _) in enumerate(lines) for name in reads}
    live, most = {}, 0
    for i, (name, _, nbytes) in enumerate(lines):
        live = {n: size for n, size in live.items() if last.get(n, i + 1) > i}
        live[name] = nbytes
        most = max(most, sum(live.values()))
    return most
""",
            "Case 1 of 3, which = 'chain': got 256",
        ),
        ("def most_bytes(lines):\n    return max(nbytes for _, _, nbytes in lines) * 2", "got 512, wanted 320"),
    ],
}
