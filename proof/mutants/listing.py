"""mutants.jsonl: the defects that were drawn once by a seed, found again in today's source, and who found each.

The list stays when the tests change, so that two scores compare. A defect whose place is gone makes way for another one
that is drawn in its package; one that changes nothing is kept with the reason, and another is drawn as well.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from proof.mutants import mutations
from proof.mutants.mutations import Mutation

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("mutants.jsonl")
COUNT, SEED = 300, 1
LEAST = 10  # of a package, however small it is
PACKAGES = ("apiserver", "cluster", "dashboard", "jobs", "kube", "node", "queues", "scheduler")
# Neither a rule nor a controller: what pages look like, tables of the database, commands; and the shim of a container, which
# runs with an environment of its own: docs/escapes.md says what that holds.
LEFT_OUT = {"parts", "templatetags", "accounts", "migrations", "models", "management", "shim"}
PAGES = {"dashboard/pages", "jobs/pages", "jobs/pages/job", "jobs/pages/job_list"}
LEFT_OUT_FILES = {"__init__.py", "apps.py", "urls.py", "settings.py", "version.py", "views.py"}


class Mutant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A defect of the list. found_by: the file of a test, "simulation", or nothing.

    asked: how many stages of the hunt were asked in vain; with all of them, it survived.
    equivalent: why nobody could ever meet it, if that is so.
    """

    number: int
    module: str
    function: str
    operator: str
    before: str
    after: str
    nth: int = 0
    found_by: str = ""
    asked: int = 0
    equivalent: str = ""

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What it is known by in its module."""
        return (self.function, self.operator, self.before, self.after, self.nth)

    @property
    def package(self) -> str:
        """The package at the top that has it."""
        return self.module.partition("/")[0]


def load() -> list[Mutant]:
    """Return the list."""
    lines = FILE.read_bytes().splitlines() if FILE.exists() else []
    return [msgspec.json.decode(line, type=Mutant) for line in lines]


def save(mutants: Iterable[Mutant]) -> None:
    """Write the list, in the order of the numbers."""
    lines = (msgspec.json.encode(each) + b"\n" for each in sorted(mutants, key=lambda each: each.number))
    FILE.write_bytes(b"".join(lines))


def sources() -> dict[str, str]:
    """Return by path the source of each module that may have a defect."""
    paths = (path.relative_to(ROOT) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {
        str(path): (ROOT / path).read_text()
        for path in paths
        if path.name not in LEFT_OUT_FILES and LEFT_OUT.isdisjoint(path.parts) and str(path.parent) not in PAGES
    }


def located(mutants: Sequence[Mutant], modules: Mapping[str, str]) -> dict[int, tuple[str, Mutation]]:
    """Return by number where each defect is in today's source. One whose place is gone is not in it.

    A module may have moved: then the one other place that looks the same is it.
    """
    by_key: dict[tuple[str, str, str, str, int], list[tuple[str, Mutation]]] = defaultdict(list)
    for path, source in modules.items():
        for each in mutations.mutations(source):
            by_key[each.key].append((path, each))
    found: dict[int, tuple[str, Mutation]] = {}
    for mutant in mutants:
        places = by_key.get(mutant.key, [])
        same = [location for location in places if location[0] == mutant.module]
        if same or len(places) == 1:
            found[mutant.number] = (same or places)[0]
    return found


def filled(mutants: Sequence[Mutant], modules: Mapping[str, str], count: int = COUNT) -> list[Mutant]:
    """Return the list with `count` defects that somebody could meet and that have a place in today's source.

    Each package has its share of them by the length of its code.
    """
    places = located(mutants, modules)
    remaining = []
    for mutant in mutants:
        if mutant.number in places:
            mutant.module = places[mutant.number][0]
            remaining.append(mutant)
    taken: dict[str, list[Mutation]] = defaultdict(list)
    for path, mutation in places.values():
        taken[path].append(mutation)
    number = max((each.number for each in mutants), default=0)
    for package, share in _shares(modules, count).items():
        has = sum(each.package == package and not each.equivalent for each in remaining)
        draw = random.Random(f"{SEED} {package} {number}")
        for path, each in _drawn(package, modules, taken, draw, share - has):
            number += 1
            remaining.append(
                Mutant(
                    number=number,
                    module=path,
                    function=each.function,
                    operator=each.operator,
                    before=each.before,
                    after=each.after,
                    nth=each.nth,
                )
            )
    return remaining


def _shares(modules: Mapping[str, str], count: int) -> dict[str, int]:
    lines = Counter[str]()
    for path, source in modules.items():
        lines[path.partition("/")[0]] += sum(1 for line in source.splitlines() if line.strip())
    shares = {name: max(LEAST, round(count * size / lines.total())) for name, size in sorted(lines.items())}
    largest = max(shares, key=lambda name: shares[name])
    shares[largest] += count - sum(shares.values())
    return shares


def _drawn(
    package: str, modules: Mapping[str, str], taken: dict[str, list[Mutation]], draw: random.Random, count: int
) -> Iterator[tuple[str, Mutation]]:
    """Draw defects of a package, each kind as often as another, none of which overlaps one that is taken."""
    kinds: dict[str, list[tuple[str, Mutation]]] = defaultdict(list)
    for path, source in modules.items():
        if path.partition("/")[0] == package:
            for each in mutations.mutations(source):
                kinds[each.operator].append((path, each))
    while count > 0:
        path, each = draw.choice(kinds[draw.choice(sorted(kinds))])
        if all(each.end <= other.start or other.end <= each.start for other in taken[path]):
            taken[path].append(each)
            yield path, each
            count -= 1
