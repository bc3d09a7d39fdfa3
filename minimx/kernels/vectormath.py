"""Functions of mathematics for loops in single precision: written so that LLVM computes 8 or 16 elements at once.

The C library's functions take one number at a time and jump where numbers differ, so a loop that calls one computes nothing side by side.
These have no jumps. Each reduces its argument to an interval around 0, takes a polynomial there, and puts the result together; special
cases are chosen by `?:` at the end. Errors against exact values are below 2 units in the last place (3 for tanh) over all numbers, with
infinities, NaN, zeros and numbers below 2**-126 as they should be (tests/kernels/test_vectormath.py).

The coefficients are those of polynomials with the least relative error on their interval, found by iteratively weighted least squares in
double precision, where the leading terms are fixed as the function's own. A constant in two parts, such as ln 2, is one whose first
part has so few digits that its product with a whole number is exact. Book: chapter 5.
"""

from __future__ import annotations

import functools
import re

#: In an order in which each needs only those before it.
SOURCES: dict[str, str] = {
    # 2**n, for -252 <= n <= 254: in two steps, since a float's exponent reaches only half as far.
    "scaled": """
float scaled(float x, int n) {
    int half = n >> 1;
    return x * __int_as_float((half + 127) << 23) * __int_as_float((n - half + 127) << 23);
}""",
    # exp(r) = 1 + r + r * r * tail(r), where |r| <= ln(2) / 2.
    "tail": """
float tail(float r) {
    float p = fma(1.3882393e-3f, r, 8.367181e-3f);
    p = fma(p, r, 4.1667223e-2f);
    p = fma(p, r, 0.16666539f);
    return fma(p, r, 0.49999997f);
}""",
    # x = n ln 2 + r. Adding 1.5 * 2**23 rounds x / ln 2 to a whole number, which then stands in the last bits.
    "exp": """
float exp(float x) {
    float inside = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
    float shifted = fma(inside, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fma(n, -1.42860677e-6f, fma(n, -0.693145752f, inside));
    return scaled(fma(tail(r), r * r, r) + 1.0f, __float_as_int(shifted) - 0x4B400000);
}""",
    # 2**n (exp(r) - 1) + (2**n - 1): nothing is lost where x is small and n is 0. By halves, since 2**128 is no float. For -18 <= x <= 89.
    "less1": """
float less1(float x) {
    float shifted = fma(x, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = fma(n, -1.42860677e-6f, fma(n, -0.693145752f, x));
    float half = __int_as_float((__float_as_int(shifted) - 0x4B400000 + 126) << 23);
    return 2.0f * fma(half, fma(tail(r), r * r, r), half - 0.5f);
}""",
    "expm1": """
float expm1(float x) {
    float value = less1(x > 89.0f ? 89.0f : x < -18.0f ? -18.0f : x);
    return x == 0.0f ? x : value;
}""",
    # (exp(2a) - 1) / (exp(2a) + 1); beyond 10 it is 1 to the last bit.
    "tanh": """
float tanh(float x) {
    float size = fabs(x);
    float most = less1(2.0f * (size > 10.0f ? 10.0f : size));
    return copysign(most / (most + 2.0f), x);
}""",
    # x = 2**n (1 + f), where 1 + f lies between the root of 1/2 and that of 2.
    "log": """
float log(float x) {
    float normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
    int bits = __float_as_int(normal) - 0x3F3504F3;
    float n = float(bits >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    float f = __int_as_float((bits & 0x7FFFFF) + 0x3F3504F3) - 1.0f;
    float p = fma(0.06746601f, f, -0.11675641f);
    p = fma(p, f, 0.11888175f);
    p = fma(p, f, -0.124055915f);
    p = fma(p, f, 0.14219551f);
    p = fma(p, f, -0.16667996f);
    p = fma(p, f, 0.20002119f);
    p = fma(p, f, -0.2500001f);
    p = fma(p, f, 0.33333313f);
    float square = f * f;
    float value = fma(n, 1.42860677e-6f, fma(p, f * square, -0.5f * square));
    value = fma(n, 0.693145752f, value + f);
    value = x == 0.0f ? -INFINITY : value;
    return x < 0.0f ? NAN : x < INFINITY ? value : x;
}""",
    # The logarithm of 1 + x as it was rounded, and what the rounding took away.
    "log1p": """
float log1p(float x) {
    float more = 1.0f + x;
    float value = log(more) + (x - (more - 1.0f)) / more;
    return more == 1.0f ? x : x > -1.0f && x < INFINITY ? value : log(more);
}""",
    # A polynomial in x * x for small x; else from the logarithm of 1 - erf, a polynomial. Beyond 4 it is 1 to the last bit.
    "erf": """
float erf(float x) {
    float size = fabs(x);
    float square = x * x;
    float p = fma(7.853858e-5f, square, -8.0101925e-4f);
    p = fma(p, square, 5.1883277e-3f);
    p = fma(p, square, -2.6853811e-2f);
    p = fma(p, square, 0.112835854f);
    p = fma(p, square, -0.37612626f);
    p = fma(p, square, 0.12837917f);
    float a = size > 4.0f ? 4.0f : size;
    float q = fma(-2.1697679e-5f, a, 4.414734e-4f);
    q = fma(q, a, -4.205289e-3f);
    q = fma(q, a, 2.521035e-2f);
    q = fma(q, a, -0.108422115f);
    q = fma(q, a, -0.6332164f);
    q = fma(q, a, -1.1295804f);
    q = fma(q, a, 1.8846964e-4f);
    float far = copysign(1.0f - exp(q), x);
    return size < 1.0f ? fma(p, x, x) : x == x ? far : x;
}""",
}
CALL = re.compile(r"\b([a-z]\w*)\(")
NEEDS = {name: [other for other in CALL.findall(text)[1:] if other in SOURCES] for name, text in SOURCES.items()}
#: Functions that become an instruction, or a few, in either precision.
SIMPLE = frozenset({"fabs", "sqrt", "floor", "ceil", "trunc", "copysign", "float", "double"})


def calls(expression: str) -> set[str]:
    """The functions that an expression calls."""
    return set(CALL.findall(expression))


@functools.lru_cache(maxsize=1024)
def computes(expression: str, kind: str) -> bool:
    """Whether a loop can have `expression`, in `kind`, `float` or `double`: for which NumPy's own functions are the better ones."""
    return calls(expression) <= (SIMPLE | SOURCES.keys() if kind == "float" else SIMPLE)


def prelude(source: str) -> str:
    """The functions that `source` needs, written out."""
    needed: set[str] = set()
    waiting = [name for name in calls(source) if name in SOURCES]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += NEEDS[name]
    return "\n".join(text.strip() for name, text in SOURCES.items() if name in needed)
