"""A compiler for the part of C in which loops are written: from their source to LLVM's language.

What a fused group computes is known only when a program is made, so its loop is written then, as text (fused.py), and must become machine
code on the spot. LLVM does the hard part: choosing instructions, and computing 8 or 16 elements with each of them. This file says to LLVM
what the text means. It goes over the text once and writes each expression as it reads it; variables lie in memory until LLVM moves them to
registers. The language:

    float relu(float x) { return x < 0.0f ? 0.0f : x; }
    void loop(float *x, float *y, float s, long low, long high) {
        for (long i = low; i < high; i++) {
            float product = x[i] * s;
            y[i] = relu(product);
        }
    }

Types are `float`, `double`, `int`, `long` and `bool`; operators are C's, without those that write; `sum += x` may add in any order.
`float4`, `float8` and `float16` are so many floats as one value, as in OpenCL, for code that says itself what is computed side by side:
`x[i : 8]` are those from `x[i]` on, `float8(s)` is `s` eight times. They have arithmetic and `fma`, and no comparisons.
The turns of a loop that has no other inside must be independent but for such sums, and are computed side by side.
Both sides of `?:` are computed, so that nothing needs a jump. Book: chapter 5.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

TYPES = {
    "bool": "i1", "int": "i32", "long": "i64", "float": "float", "double": "double", "void": "void",
    "float4": "<4 x float>", "float8": "<8 x float>", "float16": "<16 x float>",
}  # fmt: skip  # C's and LLVM's names
RANKS = [
    "bool",
    "int",
    "long",
    "float",
    "double",
    "float4",
    "float8",
    "float16",
]  # an operation takes place in the higher type of its operands
VECTORS = {"float4": 4, "float8": 8, "float16": 16}
FLOATING = {  # and how LLVM's functions are called for them
    "float": "f32", "double": "f64", "float4": "v4f32", "float8": "v8f32", "float16": "v16f32",
}  # fmt: skip
TOKEN = re.compile(
    r"\s*(?://[^\n]*\s*)*(?:(?P<number>0x[0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?f?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>\|\||&&|<<|>>|<=|>=|==|!=|\+\+|\+=|[-+*/%<>!?:(),&|^=;{}\[\]]))"
)
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
OPERATIONS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "and", "|": "or", "^": "xor", "&&": "and", "||": "or",
    "<<": "shl", ">>": "ashr",
}  # fmt: skip
TESTS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
#: Functions that LLVM knows by itself, for floating types.
INTRINSICS = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "copysign": "copysign",
    "fma": "fmuladd", "fmaximum": "maximum", "fminimum": "minimum",
}  # fmt: skip
CONSTANTS = {"INFINITY": "0x7FF0000000000000", "NAN": "0x7FF8000000000000"}  # of type float
BITS = {"__float_as_int": ("float", "int"), "__int_as_float": ("int", "float")}


class CompilerError(Exception):
    """Text that is not of the language: a fault of whoever wrote it."""


class Value(NamedTuple):
    """An operand as LLVM writes it, and its type."""

    type: str
    text: str


def compiled(source: str) -> str:
    """The functions of `source` in LLVM's language. **Raises** CompilerError."""
    return _Compiler(source).module()


class _Compiler:
    """Reads tokens and writes instructions. `scope` has the variables of the function that is read: their types and addresses."""

    def __init__(self, source: str) -> None:
        self.tokens = _tokens(source)
        self.at = 0
        self.functions: dict[tuple[str, tuple[str, ...]], Value] = {}  # name and types -> the result's type, and LLVM's name
        self.used: dict[str, str] = {}  # LLVM's own functions that are called -> their declarations
        self.metadata: list[str] = []
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.scope: dict[str, Value] = {}
        self.count = 0
        self.group: str | None = None  # the mark of accesses to memory in the loop that is read

    def module(self) -> str:
        functions = []
        while self._peek():
            functions.append(self._function())
        return "\n".join([*functions, *self.used.values(), *self.metadata]) + "\n"

    # ---- tokens

    def _peek(self) -> str:
        return self.tokens[self.at]

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, text: str) -> bool:
        found = self.tokens[self.at] == text
        self.at += found
        return found

    def _want(self, text: str) -> None:
        if not self._take(text):
            raise CompilerError(f"{text!r} is wanted in place of {' '.join(self.tokens[self.at : self.at + 8])!r}")

    # ---- functions and statements

    def _function(self) -> str:
        result, name = self._next(), self._next()
        self.lines, self.slots, self.scope = [], [], {}
        self._want("(")
        parameters: list[Value] = []
        while not self._take(")"):
            kind = self._next()
            kind += "*" if self._take("*") else ""
            parameter = self._next()
            parameters.append(Value(kind, f"%{parameter}"))
            if kind.endswith("*"):
                self.scope[parameter] = parameters[-1]
            else:
                self._declare(parameter, parameters[-1])
            self._take(",")
        symbol = name if result == "void" else f"{name}.{'.'.join(kind for kind, _ in parameters)}"
        self._block()
        if result == "void":
            self.lines.append("ret void")
        self.functions[name, tuple(kind for kind, _ in parameters)] = Value(result, symbol)
        signature = ", ".join(f"{'ptr' if kind.endswith('*') else TYPES[kind]} {text}" for kind, text in parameters)
        how = "" if result == "void" else "internal "
        inline = "" if result == "void" else " alwaysinline"
        body = "\n".join(f"  {line}" if not line.endswith(":") else line for line in [*self.slots, *self.lines])
        return f"define {how}{TYPES[result]} @{symbol}({signature}) nounwind{inline} {{\n{body}\n}}\n"

    def _block(self) -> None:
        self._want("{")
        while not self._take("}"):
            self._statement()

    def _statement(self) -> None:
        first = self._next()
        if first == "return":
            value = self._expression()
            self.lines.append(f"ret {TYPES[value.type]} {value.text}")
        elif first == "for":
            self._loop()
            return
        elif first in TYPES:
            name = self._next()
            self._want("=")
            self._declare(name, self._cast(self._expression(), first))
        elif self._take("["):
            kind, pointer = self._address(first)
            self._want("=")
            value = self._cast(self._expression(), kind)
            self.lines.append(f"store {TYPES[kind]} {value.text}, ptr {pointer}{_alignment(kind)}{self._mark()}")
        else:
            self._assign(first)
        self._want(";")

    def _assign(self, name: str) -> None:
        """`name = expression`, or `name += expression`, whose order does not matter."""
        kind, slot = self._variable(name)
        if self._take("+="):
            before = self._made(kind, f"load {TYPES[kind]}, ptr {slot}")
            value = self._cast(self._expression(), kind)
            adds = "fadd reassoc" if kind in FLOATING else "add"
            value = self._made(kind, f"{adds} {TYPES[kind]} {before.text}, {value.text}")
        else:
            self._want("=")
            value = self._cast(self._expression(), kind)
        self.lines.append(f"store {TYPES[kind]} {value.text}, ptr {slot}")

    def _declare(self, name: str, value: Value) -> None:
        slot = self._name()
        self.slots.append(f"{slot} = alloca {TYPES[value.type]}")
        self.lines.append(f"store {TYPES[value.type]} {value.text}, ptr {slot}")
        self.scope[name] = Value(value.type, slot)

    def _loop(self) -> None:
        """`for (long i = low; i < high; i++) { ... }`. What a loop without another inside it does with memory may be done side by side."""
        self._want("(")
        self._want("long")
        name = self._next()
        self._want("=")
        self._declare(name, self._cast(self._expression(), "long"))
        self._want(";")
        head, body, end = (self._name()[1:] for _ in range(3))
        outer, self.group = self.group, f"!{len(self.metadata)}"
        loop, access, once = (f"!{len(self.metadata) + position}" for position in (1, 2, 3))
        inside = self.tokens[self.at : self._end_of_block()]
        innermost = "for" not in inside
        marks = [loop, access] + [once] * any(kind in inside for kind in VECTORS)  # more turns at once would only be more code
        self.metadata += [
            f"{self.group} = distinct !{{}}",
            f"{loop} = distinct !{{{', '.join(marks)}}}",
            f'{access} = !{{!"llvm.loop.parallel_accesses", {self.group}}}',
            f'{once} = !{{!"llvm.loop.unroll.disable"}}',
        ]
        self.lines += [f"br label %{head}", f"{head}:"]
        test = self._expression()
        self.lines += [f"br i1 {test.text}, label %{body}, label %{end}", f"{body}:"]
        for text in (";", name, "++", ")"):
            self._want(text)
        self._block()
        slot = self.scope[name].text
        before = self._made("long", f"load i64, ptr {slot}")
        after = self._made("long", f"add nsw i64 {before.text}, 1")
        mark = f", !llvm.loop {loop}" if innermost else ""
        self.lines += [f"store i64 {after.text}, ptr {slot}", f"br label %{head}{mark}", f"{end}:"]
        self.group = outer

    def _end_of_block(self) -> int:
        """The position of the bracket that ends the block that begins next."""
        at = self.tokens.index("{", self.at)
        depth = 1
        while depth:
            at += 1
            depth += {"{": 1, "}": -1}.get(self.tokens[at], 0)
        return at

    # ---- expressions

    def _expression(self) -> Value:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        yes = self._expression()
        self._want(":")
        yes, no, kind = self._alike(yes, self._expression())
        truth = self._cast(condition, "bool")
        return self._made(kind, f"select i1 {truth.text}, {TYPES[kind]} {yes.text}, {TYPES[kind]} {no.text}")

    def _binary(self, level: int) -> Value:
        """An operation of a level of precedence, from left to right."""
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (sign := self._peek()) in LEVELS[level]:
            self._next()
            left = self._operation(sign, left, self._binary(level + 1))
        return left

    def _operation(self, sign: str, left: Value, right: Value) -> Value:
        if sign in ("&&", "||"):
            left, right = self._cast(left, "bool"), self._cast(right, "bool")
        left, right, kind = self._alike(left, right)
        floating = kind in FLOATING
        if sign in TESTS:
            if kind in VECTORS:
                raise CompilerError(f"{kind} has no {sign}")
            test = TESTS[sign]
            if floating:
                instruction = f"fcmp {'u' if test == 'ne' else 'o'}{test}"  # with a NaN, only != is true
            else:
                instruction = f"icmp {test if test in ('eq', 'ne') else 's' + test}"
            return self._made("bool", f"{instruction} {TYPES[kind]} {left.text}, {right.text}")
        operation = OPERATIONS[sign]
        if floating:
            operation = f"f{operation}"
        elif operation in ("div", "rem"):
            operation = f"s{operation}"
        elif kind == "long" and operation in ("add", "sub", "mul"):
            operation += " nsw"  # positions do not overflow; the bits of an int may
        return self._made(kind, f"{operation} {TYPES[kind]} {left.text}, {right.text}")

    def _unary(self) -> Value:
        if self._take("-"):
            value = self._unary()
            if value.type in FLOATING:
                return self._made(value.type, f"fneg {TYPES[value.type]} {value.text}")
            return self._made(value.type, f"sub {TYPES[value.type]} 0, {value.text}")
        if self._take("!"):
            return self._made("bool", f"xor i1 {self._cast(self._unary(), 'bool').text}, true")
        if self._take("("):
            value = self._expression()
            self._want(")")
            return value
        word = self._next()
        if word[0].isdigit() or word[0] == ".":
            return _literal(word)
        if word in CONSTANTS:
            return Value("float", CONSTANTS[word])
        if self._take("("):
            return self._call(word)
        if self._take("["):
            kind, pointer = self._address(word)
            return self._made(kind, f"load {TYPES[kind]}, ptr {pointer}{_alignment(kind)}{self._mark()}")
        kind, slot = self._variable(word)
        return self._made(kind, f"load {TYPES[kind]}, ptr {slot}")

    def _call(self, name: str) -> Value:
        arguments = []
        while not self._take(")"):
            arguments.append(self._expression())
            self._take(",")
        if name in TYPES:
            return self._cast(arguments[0], name)
        if name in BITS:
            given, made = BITS[name]
            return self._made(made, f"bitcast {TYPES[given]} {arguments[0].text} to {TYPES[made]}")
        kinds = tuple(value.type for value in arguments)
        if (name, kinds) in self.functions:
            kind, symbol = self.functions[name, kinds]
        elif name in INTRINSICS and kinds[0] in FLOATING and len(set(kinds)) == 1:
            kind, symbol = kinds[0], f"llvm.{INTRINSICS[name]}.{FLOATING[kinds[0]]}"
            self.used[symbol] = f"declare {TYPES[kind]} @{symbol}({', '.join([TYPES[kind]] * len(kinds))})"
        else:
            raise CompilerError(f"there is no function {name}({', '.join(kinds)})")
        given = ", ".join(f"{TYPES[value.type]} {value.text}" for value in arguments)
        return self._made(kind, f"call {TYPES[kind]} @{symbol}({given})")

    # ---- values

    def _name(self) -> str:
        self.count += 1
        return f"%.{self.count}"

    def _made(self, kind: str, instruction: str) -> Value:
        name = self._name()
        self.lines.append(f"{name} = {instruction}")
        return Value(kind, name)

    def _variable(self, name: str) -> Value:
        if name not in self.scope:
            raise CompilerError(f"{name} is not declared")
        return self.scope[name]

    def _address(self, name: str) -> Value:
        """The address of `name[...]`, whose first bracket has been read, with the type of what lies there."""
        kind, pointer = self._variable(name)
        kind = kind[:-1]
        position = self._cast(self._expression(), "long")
        address = self._made(kind, f"getelementptr inbounds {TYPES[kind]}, ptr {pointer}, i64 {position.text}").text
        if self._take(":"):
            kind += self._next()
            if kind not in VECTORS:
                raise CompilerError(f"there is no type {kind}")
        self._want("]")
        return Value(kind, address)

    def _mark(self) -> str:
        return "" if self.group is None else f", !llvm.access.group {self.group}"

    def _alike(self, left: Value, right: Value) -> tuple[Value, Value, str]:
        kind = max(left.type, right.type, key=RANKS.index)
        return self._cast(left, kind), self._cast(right, kind), kind

    def _cast(self, value: Value, kind: str) -> Value:
        if value.type == kind:
            return value
        old, new = TYPES[value.type], TYPES[kind]
        if kind in VECTORS:
            return self._repeated(self._cast(value, "float"), kind)
        if value.type in VECTORS:
            raise CompilerError(f"a {value.type} is no {kind}")
        if kind == "bool":
            zero = "une" if value.type in ("float", "double") else "ne"
            test = "fcmp" if zero == "une" else "icmp"
            return self._made(kind, f"{test} {zero} {old} {value.text}, {'0.0' if test == 'fcmp' else '0'}")
        floating = [each in ("float", "double") for each in (value.type, kind)]
        if all(floating):
            instruction = "fpext" if kind == "double" else "fptrunc"
        elif any(floating):
            instruction = "fptosi" if floating[0] else "uitofp" if value.type == "bool" else "sitofp"
        else:
            widens = RANKS.index(kind) > RANKS.index(value.type)
            instruction = ("zext" if value.type == "bool" else "sext") if widens else "trunc"
        return self._made(kind, f"{instruction} {old} {value.text} to {new}")

    def _repeated(self, value: Value, kind: str) -> Value:
        """A float as all parts of a vector."""
        first = self._made(kind, f"insertelement {TYPES[kind]} poison, float {value.text}, i64 0")
        zeros = f"<{VECTORS[kind]} x i32> zeroinitializer"
        return self._made(kind, f"shufflevector {TYPES[kind]} {first.text}, {TYPES[kind]} poison, {zeros}")


def _alignment(kind: str) -> str:
    """What LLVM is told of an address: vectors lie anywhere."""
    return ", align 4" if kind in VECTORS else ""


def _tokens(source: str) -> list[str]:
    found, position, source = [], 0, source.rstrip()
    while position < len(source):
        match = TOKEN.match(source, position)
        if match is None:
            raise CompilerError(f"this is not of the language: {source[position : position + 40]!r}")
        found.append(match[match.lastgroup or 0])
        position = match.end()
    return [*found, ""]


def _literal(word: str) -> Value:
    """A number. LLVM wants floating ones as the bits of a double."""
    if word.startswith("0x") or word.isdigit():
        return Value("int", str(int(word, 0)))
    kind = "float" if word.endswith("f") else "double"
    value = float(word.rstrip("f"))
    if kind == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
    return Value(kind, f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}")
