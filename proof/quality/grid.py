"""The grid: a table of kinds, of pages, of actions and of reasons, whose columns are questions that sources answer.

A column asks what one can see without running anything: whether a name stands where it has to stand. That it stands there for
something is what the tests are for which it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve

from cluster.api import admission
from jobs.rules import remedies
from kube import resources
from kube.resources import Resource
from proof.pictures import pages
from scheduler.engine.cause import Reason

ROOT = Path(__file__).parents[2]


class Column(NamedTuple):
    """A question about a row, and whether it is answered by yes."""

    name: str
    question: str
    holds: Callable[[str], bool]


class Table(NamedTuple):
    """Rows by their names, in order, and the columns that are asked of each."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]


class Gap(NamedTuple):
    """What a row lacks."""

    table: str
    row: str
    column: str


def tables() -> tuple[Table, ...]:
    """Return all tables; Django has to be set up."""
    return _kinds(), _pages(), _actions(), _reasons()


def gaps(found: Iterable[Table]) -> list[Gap]:
    """Return what is lacking, row by row."""
    return [
        Gap(table.title, row, column.name)
        for table in found
        for row in table.rows
        for column in table.columns
        if not column.holds(row)
    ]


def problems(lacking: Iterable[Gap], reasons: Mapping[Gap, str]) -> list[str]:
    """Return what is wrong, in sentences: what lacks without a reason, and reasons for what does not lack."""
    lacking = set(lacking)
    return [
        *(
            f"{gap.table}: {gap.row} lacks “{gap.column}”. Add it, or a reason to proof/quality/reasons.toml."
            for gap in sorted(lacking - reasons.keys())
        ),
        *(
            f"{gap.table}: {gap.row} has “{gap.column}” by now, or is gone. Take its reason out of proof/quality/reasons.toml."
            for gap in sorted(reasons.keys() - lacking)
        ),
    ]


@cache
def _text(*patterns: str) -> str:
    """Return the text of all files that match."""
    files = (file for pattern in patterns for file in sorted(ROOT.glob(pattern)))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _names(word: str, *patterns: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", _text(*patterns)) is not None


def _kinds() -> Table:
    constants = {value.id: name for name, value in vars(resources).items() if isinstance(value, Resource)}
    kinds = {kind.id: kind for kind in resources.ALL}
    pages_of_ours = ("dashboard/pages/*.py", "dashboard/parts/*.py", "jobs/pages/**/*.py", "queues/**/*.py")
    return Table(
        "Kinds",
        tuple(kinds),
        (
            Column("rules", "Does its own rule judge it at the door, beside its schema?", lambda row: admission.has_rules(kinds[row])),
            Column("verified", "Is it made, changed or deleted in tests/actions, where everybody must agree afterwards?", lambda row: _names(constants[row], "tests/actions/test_actions.py")),
            Column("simulated", "Is it made or changed in the simulation?", lambda row: _names(constants[row], "proof/simulation/**/*.py")),
            Column("recorded", "Do clients of a real kube-apiserver ask for it, and ours the same?", lambda row: f"\n## {row}\n" in _text("docs/kubernetes-traffic.md")),
            Column("shown", "Does a page read it?", lambda row: _names(constants[row], *pages_of_ours)),
            Column("explained", "Does docs/how-to name it?", lambda row: any(_names(each, "docs/how-to/*.md") for each in (kinds[row].kind, f"{kinds[row].kind}s", kinds[row].plural))),
        ),
    )  # fmt: skip


def addresses(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of each address with the names of what has to be filled in."""
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from addresses(each, f"{prefix}{each.namespace}:" if each.namespace else prefix)
        elif isinstance(each, URLPattern):
            yield f"{prefix}{each.name}", tuple(each.pattern.regex.groupindex)


def _name_of(path: str) -> str:
    """Return the name of the address that has a path, "" where none has."""
    try:
        return resolve(path.partition("?")[0]).view_name
    except Resolver404:
        return ""


def _forms() -> list[str]:
    """Return the names of addresses to which forms and buttons of templates send something, sorted."""
    return sorted(
        set(re.findall(r"""(?:hx-post|action|formaction)="\{% url ['"]([\w:-]+)""", _text("templates/**/*.html")))
    )


def _pages() -> Table:
    pictured = {_name_of(path) for path in pages.PAGES.values()}
    only_sent = set(_forms()) - pictured
    looked_at = Column(
        "looked at", "Is it looked at in a browser: in both themes, at five widths, and by axe?", pictured.__contains__
    )
    return Table("Pages", tuple(name for name, _ in addresses(get_resolver()) if name not in only_sent), (looked_at,))


def _actions() -> Table:
    paths = re.findall(r"""(?:post|fill)\(f?"([^"]+)\"""", _text("tests/actions/test_actions.py"))
    done = {_name_of(path.replace("{HERE}", "/jobs/vault").replace("{PLACE}", "vault")) for path in paths}
    verified = Column(
        "verified", "Is it done in tests/actions, where everybody must agree afterwards?", done.__contains__
    )
    return Table("Actions", tuple(_forms()), (verified,))


def _reasons() -> Table:
    constants = {each.value: each.name for each in Reason}
    met = "tests/**/*.py", "tests/golden/**/*.txt", "tests/golden/**/*.yaml"
    return Table(
        "Reasons",
        tuple(dict.fromkeys((*Reason, *remedies.REASONS))),
        (
            Column("remedy", "Does it say what it means and what helps?", remedies.REASONS.__contains__),
            Column("explained", "Does docs/how-to name it?", lambda row: _names(row, "docs/how-to/*.md")),
            Column("met", "Does a test meet it?", lambda row: _names(row, *met) or _names(f"Reason.{constants.get(row, row)}", *met)),
        ),
    )  # fmt: skip
