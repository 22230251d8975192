"""Defects made by machine: which there are, and that each sleeps until it is woken."""

import ast

from proof.mutants import listing, report
from proof.mutants.hunting import Stage
from proof.mutants.mutations import applied, mutations
from tests.tables import cases

HEAD = "from __future__ import annotations\n"


def made(source):
    """Return the defects of a function's body, as `before -> after`."""
    return [f"{each.before} -> {each.after}" for each in mutations(HEAD + source)]


@cases("body, wanted", {
    "a bound": ("x = a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
    "membership": ("x = a in b", ["a in b -> a not in b"]),
    "and": ("x = a and b()", ["a and b() -> a", "a and b() -> a or b()", "a and b() -> b()"]),
    "not": ("x = not a", ["not a -> a"]),
    "arithmetic": ("x = a + b", ["a + b -> a - b"]),
    "text is put together, not computed": ("x = a + 'text of people'", []),
    "a branch": ("x = a if b else c", ["a if b else c -> c if b else a"]),
    "a filter": ("x = [a for a in b if a]", ["a -> True", "a -> not a"]),
    "numbers and truths": ("x = 5, True", ["5 -> 6", "True -> False"]),
    "words, not sentences": ("x = 'Running', 'in words'", ["'Running' -> 'not-Running'"]),
    "the last entry": ("x = {a: b, c: d}", ["{a: b, c: d} -> {a: b}"]),
    "a function": ("x = max(a, b)", ["max(a, b) -> min(a, b)"]),
    "a condition": ("if a: pass", ["a -> not a"]),
    "a result": ("return a", ["a -> None"]),
    "a call": ("write(a)", ["write(a) -> "]),
    "what is only logged": ("log.info(a > b)", []),
    "an assignment that others see": ("a.b = c", ["a.b = c -> "]),
    "a name": ("a = c", []),
    "a refusal": ("raise a", ["raise a -> "]),
    "what is for the type checker": ("assert a > b", []),
    "text for people": ("x = f'{a > b}'", []),
    "a guard, not a pattern": ("match a:\n  case 'b' if c: pass", ["c -> not c"]),
})  # fmt: skip
def test_what_can_be_made_of_a_function(body, wanted):
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    assert sorted(made(f"def function(a, b, c):\n{lines}")) == sorted(wanted)


def test_types_are_left_alone_and_what_says_whether_is_turned_round():
    assert made("Either = int | str\ndef f(a: int | str = 1) -> None: ...") == ["1 -> 2"]
    assert made("def f(a) -> bool:\n  return g(a)") == ["g(a) -> not (g(a))"]


SOURCE = """class Counter:
    def __init__(self):
        self.total = 0  # ä
    def add(self, numbers):
        self.total += sum(
            each
            for each in numbers  # all
            if each > 0
        )
        return self.total
"""


def test_a_defect_sleeps_until_it_is_woken():
    asleep = applied(SOURCE, {1: next(each for each in mutations(SOURCE) if each.operator == "filter")}, "_mutant")
    space = {"_mutant": lambda number: False}
    exec(compile(asleep, "counter", "exec"), space)
    assert space["Counter"]().add((-1, 2)) == 2
    space["_mutant"] = lambda number: True
    assert space["Counter"]().add((-1, 2)) == 1
    assert asleep.count("\n") == SOURCE.count("\n")


def test_every_defect_of_the_list_leaves_a_module_that_compiles():
    modules = listing.sources()
    places = listing.located(listing.load(), modules)
    by_module = {}
    for number, (path, mutation) in places.items():
        by_module.setdefault(path, {})[number] = mutation
    for path, chosen in by_module.items():
        ast.parse(applied(modules[path], chosen, "_mutant"))


def test_the_list_finds_a_defect_again_where_lines_have_moved():
    mutants = [listing.Mutant(number=1, module="a.py", function="f", operator="not", before="not a", after="a")]
    source = "\n\n# above\ndef f(a):\n    return not a\n"
    assert listing.located(mutants, {"a.py": source})[1][1].start == source.index("not a")
    assert listing.located(mutants, {"b.py": source})[1][0] == "b.py"  # the module has moved
    assert listing.located(mutants, {"a.py": "def f(a):\n    return bool(a)\n"}) == {}


def test_a_mutation_is_known_by_how_it_looks_and_which_it_is():
    first, second = (each for each in mutations("def f(a):\n    g(a)\n    g(a)\n") if each.operator == "call")
    assert (first.key, second.key) == (("f", "call", "g(a)", "", 0), ("f", "call", "g(a)", "", 1))


def test_what_is_gone_or_harmless_makes_way_for_another():
    modules = {"jobs/a.py": "def f(a, b):\n" + "".join(f"    g(a < {n}, b and {n})\n" for n in range(40))}
    whole = listing.filled([], modules, 20)
    assert [each.number for each in whole] == list(range(1, 21))
    whole[3].equivalent = "nobody could meet it"
    fewer = {"jobs/a.py": modules["jobs/a.py"].replace(whole[0].before, "c")}
    again = listing.filled(whole, fewer, 20)
    assert sum(not each.equivalent for each in again) == 20
    assert whole[3] in again
    assert listing.filled([], modules, 20) == listing.filled([], modules, 20)


def test_the_page_says_what_the_list_has():
    assert report.PAGE.read_text() == report.text(listing.load())


def test_a_defect_without_a_finder_has_survived_once_everybody_was_asked():
    mutant = listing.Mutant(number=7, module="jobs/a.py", function="f", operator="not", before="not a|b", after="")
    page = report.text([mutant])
    assert "| jobs | 1 | 0 | 0 | 0 | 1 |" in page
    assert "| 7 | `jobs/a.py` f | `not a\\|b` | (left out) | nobody yet |" in page
    assert "0 of 1, 0.0 %" in page
    mutant.asked = len(Stage)
    page = report.text([mutant])
    assert "| jobs | 1 | 0 | 0 | 1 | 0 |" in page
    assert "(left out) | everybody |" in page
