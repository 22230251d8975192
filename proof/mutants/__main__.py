"""`python -m proof.mutants`: wake one defect of the list after the other, and write down who finds it.

Whoever found a defect the last time comes first. Which tests reach what is only found out where some are left then.
What was found in a tree that has not changed since is kept: a run that was broken off goes on.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from proof.mutants import hunting, listing, planting, report
from proof.mutants.listing import Mutant

CACHE = listing.ROOT / ".cache" / "mutants"


def main() -> int:
    """Do what the command line says; 1 when fewer are found than before."""
    options = _options()
    mutants = listing.load()
    tree = CACHE / "tree"
    if not options.go_on:
        modules = listing.sources()
        mutants = listing.filled(mutants, modules, options.count)
        if options.list:
            listing.save(mutants)
            return 0
        _plant(tree, planting.plant(CACHE / "new", listing.located(mutants, modules)))
    chosen = [each for each in mutants if not each.equivalent and _is_chosen(each, options)]
    before = {each.number: each.found_by for each in chosen}
    try:
        _hunt_all(tree, chosen, options)
    finally:
        listing.save(mutants)
        report.PAGE.write_text(report.text(mutants))
    lost = [each for each in chosen if before[each.number] and each.asked == len(hunting.Stage)]
    for each in lost:
        _say(f"no longer found: {each.number} in {each.module}, which {before[each.number]} found")
    _say(f"found: {report.score(mutants)}; {hunting.cpu_s():.0f} processor seconds")
    return 1 if lost else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=listing.COUNT, help="how many defects the list has")
    parser.add_argument("--list", action="store_true", help="only draw those that the list lacks")
    parser.add_argument("--go-on", action="store_true", help="with the tree as it was when a run began")
    parser.add_argument("--processes", type=int, default=2, help="how many are tried beside each other")
    parser.add_argument("--most", type=float, default=hunting.MOST, help="which share of all tests is tried")
    parser.add_argument("--stages", type=int, default=len(hunting.Stage), help="how many stages are asked")
    parser.add_argument("--survivors", action="store_true", help="only those that nobody found the last time")
    parser.add_argument("--only", default="", help="only those of modules whose path has this")
    return parser.parse_args()


def _is_chosen(mutant: Mutant, options: argparse.Namespace) -> bool:
    return options.only in mutant.module and not (options.survivors and mutant.found_by)


def _plant(tree: Path, digest: str) -> None:
    """Put the new tree in the place of the old one, unless the two are the same."""
    mark = CACHE / "digest"
    if mark.exists() and mark.read_text() == digest:
        return
    mark.unlink(missing_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    (CACHE / "new").rename(tree)
    (CACHE / "results.jsonl").unlink(missing_ok=True)
    mark.write_text(digest)


def _hunt_all(tree: Path, mutants: Sequence[Mutant], options: argparse.Namespace) -> None:
    """Fill in who finds each, stage by stage; what the results have of this tree is taken from there."""
    results = CACHE / "results.jsonl"
    places = listing.located(mutants, listing.sources())
    lines = results.read_bytes().splitlines() if results.exists() else []
    recorded: dict[tuple[int, str], str] = {
        (number, stage): found for number, stage, found in map(msgspec.json.decode, lines)
    }
    writing = threading.Lock()
    last = {each.number: each.found_by for each in mutants}

    def find(each: Mutant, stage: hunting.Stage) -> str:
        if stage is hunting.Stage.LAST:
            return hunting.hunt_last(tree, each.number, last[each.number], passing)
        at_import = each.number in places and places[each.number][1].at_import
        return hunting.hunt(tree, each.number, each.module, reach, stage, options.most, at_import=at_import)

    def ask(each: Mutant, stage: hunting.Stage) -> None:
        found = recorded.get((each.number, stage))
        if found is None:
            found = find(each, stage)
            with writing, results.open("ab") as file:
                file.write(msgspec.json.encode([each.number, stage, found]) + b"\n")
            _say(f"{each.number:4} {each.module:50} {each.operator:12} {found or '–'}")
        each.found_by, each.asked = found, 0 if found else each.asked + 1

    for each in mutants:
        each.found_by, each.asked = "", 0
    for stage in list(hunting.Stage)[: options.stages]:
        left = [each for each in mutants if not each.found_by]
        if not left:
            break
        _say(f"• {stage}, of {len(left)}")
        if stage is hunting.Stage.LAST:
            passing = hunting.passing(tree, {found_by for found_by in last.values() if found_by.endswith(".py")})
        elif stage is hunting.Stage.NEAR:
            reach = hunting.read(tree) if (tree / "taken.jsonl").exists() else hunting.record(tree)
        with ThreadPoolExecutor(options.processes) as pool:
            list(pool.map(ask, left, itertools.repeat(stage)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
