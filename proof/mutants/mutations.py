"""Which small defects can be made in a module: one operator, constant, condition or statement is not what it was.

The operators are those of mutation testing at large (DeMillo, Lipton, Sayward 1978; Offutt's five among them), and a few
that Python invites: the filter of a comprehension, the last entry of a table, a word.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
BARE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Await)
WORD = re.compile(r"[A-Za-z][\w./-]+")
# What is said to operators is not what the product promises.
LOGS = {"log", "logger", "logging", "warnings"}


@dataclass(frozen=True)
class Mutation:
    """A defect: in a function ("" outside of all), `before` becomes `after`; both as `ast.unparse` writes them.

    nth: among the defects of the function that look the same. start, end: where it stands, in bytes of the source.
    is_statement: a whole statement, which is left out. at_import: it is met when the module is imported, and not by who calls.
    """

    function: str
    operator: str
    before: str
    after: str
    nth: int
    start: int
    end: int
    is_statement: bool = False
    at_import: bool = False

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What it is known by when the lines around it have changed."""
        return (self.function, self.operator, self.before, self.after, self.nth)


@functools.cache
def mutations(source: str) -> list[Mutation]:
    """Return all defects that can be made in a module, in the order of the source."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda each: (each.start, each.end, each.after))


def applied(source: str, chosen: dict[int, Mutation], name: str) -> str:
    """Return a module with defects that sleep until `name(number)` is true; none may overlap another."""
    text = source.encode()
    for number, each in sorted(chosen.items(), key=lambda item: item[1].start, reverse=True):
        before = text[each.start : each.end]
        if each.is_statement:
            new = b"if not %s(%d): %s" % (name.encode(), number, before)
        else:
            new = b"((%s) if %s(%d) else (%s))" % (each.after.encode(), name.encode(), number, before)
        text = text[: each.start] + new + text[each.end :]
    return text.decode()


class _Finder(ast.NodeVisitor):
    """Walks through a module."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.names: list[str] = []
        self.returns_bool = [False]
        self.in_function = False
        self.at_import = True
        self.seen: Counter[tuple[str, str, str, str]] = Counter()
        self.found: list[Mutation] = []

    # What can be made of an expression and of a statement.

    def _add(self, node: ast.expr | ast.stmt, operator: str, after: str, *, is_statement: bool = False) -> None:
        start = self.lines[node.lineno - 1] + node.col_offset
        end = self.lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        function, before = ".".join(self.names), ast.unparse(node)
        if before == after or (is_statement and self.source[self.lines[node.lineno - 1] : start].strip()):
            return
        looks = (function, operator, before, after)
        self.found.append(Mutation(*looks, self.seen[looks], start, end, is_statement, self.at_import))
        self.seen[looks] += 1

    def _leave_out(self, node: ast.stmt, operator: str) -> None:
        self._add(node, operator, "", is_statement=True)

    # Where names begin, and what is left alone.

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        was, self.in_function = self.in_function, True
        self.names.append(node.name)
        self.returns_bool.append(isinstance(node.returns, ast.Name) and node.returns.id == "bool")
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        at_import, self.at_import = self.at_import, False
        self._body(node.body)
        self.at_import = at_import
        self.names.pop()
        self.returns_bool.pop()
        self.in_function = was

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.append(node.name)
        self._body(node.body)
        self.names.pop()

    def visit_Module(self, node: ast.Module) -> None:
        self._body(node.body)

    def _body(self, body: list[ast.stmt]) -> None:
        for each in body:
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):  # a docstring
                self.visit(each)

    def visit_Assert(self, node: ast.Assert) -> None:
        """What only tells the type checker something."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text for people, whose parts have no place of their own before Python 3.12."""

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard:
            self._condition(node.guard)
        self._body(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    # Expressions.

    def visit_Compare(self, node: ast.Compare) -> None:
        for new in COMPARISONS[type(node.ops[0])]:
            changed = ast.Compare(node.left, [new(), *node.ops[1:]], node.comparators)
            is_bound = {new, type(node.ops[0])} in ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})
            self._add(node, "bound" if is_bound else "comparison", ast.unparse(changed))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, "and or", ast.unparse(ast.BoolOp(other, node.values)))
        for rest in (node.values[1:], node.values[:-1]):
            self._add(node, "operand", ast.unparse(ast.BoolOp(node.op, rest) if rest[1:] else rest[0]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, "not", ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        sides = (node.left, node.right)
        is_text = any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) or _is_text(side) for side in sides)
        is_type = isinstance(node.op, ast.BitOr) and not self.in_function
        if not is_text and not is_type and (new := ARITHMETIC.get(type(node.op))):
            self._add(node, "arithmetic", ast.unparse(ast.BinOp(node.left, new(), node.right)))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._add(node, "branch", ast.unparse(ast.IfExp(node.test, node.orelse, node.body)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool():
                self._add(node, "boolean", str(not node.value))
            case int() | float():
                self._add(node, "number", repr(node.value + 1))
            case str() if WORD.fullmatch(node.value):
                self._add(node, "word", repr(f"not-{node.value}"))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            new = FUNCTIONS[node.func.id]
            keywords = [] if new == "list" else node.keywords
            if new != "list" or len(node.args) == 1:
                self._add(node, "function", ast.unparse(ast.Call(ast.Name(new), node.args, keywords)))
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if len(node.keys) > 1:
            self._add(node, "entry", ast.unparse(ast.Dict(node.keys[:-1], node.values[:-1])))
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        if len(node.elts) > 1:
            self._add(node, "entry", ast.unparse(ast.Set(node.elts[:-1])))
        self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            for condition in generator.ifs:
                self._add(condition, "filter", "True")
                if isinstance(condition, BARE):
                    self._add(condition, "condition", f"not {ast.unparse(condition)}")
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    # Statements.

    def _condition(self, test: ast.expr) -> None:
        if isinstance(test, BARE):
            self._add(test, "condition", f"not {ast.unparse(test)}")
        self.visit(test)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._condition(node.test)
        self._body(node.body)
        self._body(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self._body(node.body)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if not isinstance(node.value, ast.Constant):
            if self.returns_bool[-1]:
                self._add(node.value, "result", f"not ({ast.unparse(node.value)})")
            else:
                self._add(node.value, "result", "None")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call):
            if next(_names(called.func), "") in LOGS:
                return
            self._leave_out(node, "call")
        elif isinstance(called, ast.Yield | ast.YieldFrom):
            self._leave_out(node, "yield")
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id.startswith("__"):
            return
        if self.in_function and isinstance(target, ast.Attribute | ast.Subscript):
            self._leave_out(node, "assignment")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self.in_function:
            self._leave_out(node, "assignment")
        self.visit(node.value)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._leave_out(node, "jump")

    def visit_Break(self, node: ast.Break) -> None:
        self._leave_out(node, "jump")

    def visit_Raise(self, node: ast.Raise) -> None:
        if self.in_function:
            self._leave_out(node, "raise")
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _names(node: ast.expr) -> Iterator[str]:
    """Yield the names of `a.b.c`, outermost first."""
    match node:
        case ast.Attribute():
            yield from _names(node.value)
            yield node.attr
        case ast.Name():
            yield node.id
