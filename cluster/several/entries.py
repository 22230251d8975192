"""Which clusters there are: what VOLCANO_UI_CLUSTERS says, one entry for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kube import names

EMBEDDED = "embedded"
# Those of `cluster.remote.mirroring.ways`, which settings have no time to load.
WAYS = ("read-only", "beside", "in-place")
FORM = f"NAME=KUBECONFIG, NAME=KUBECONFIG#CONTEXT or NAME={EMBEDDED}"


class EntriesError(ValueError):
    """The text does not say which clusters there are; the message says why, and what to do."""


class Entry(NamedTuple):
    """A cluster: the name in its address, and its kubeconfig ("" for the embedded cluster).

    context is one of the kubeconfig's, "" for its current one; way is one of WAYS, "" for the usual one.
    """

    name: str
    kubeconfig: str = ""
    context: str = ""
    way: str = ""

    def __str__(self) -> str:
        context = f"#{self.context}" if self.context else ""
        way = f":{self.way}" if self.way else ""
        return f"{self.name}={self.kubeconfig or EMBEDDED}{context}{way}"


def parse(text: str) -> tuple[Entry, ...]:
    """Return the entries, which commas or line breaks separate; EntriesError for what is none."""
    entries = tuple(_entry(word.strip()) for word in re.split(r"[,\n]", text) if word.strip())
    for index, entry in enumerate(entries):
        if entry.name in {other.name for other in entries[:index]}:
            raise EntriesError(f"{entry.name} is named twice; give each cluster a name of its own.")
        if index and not entry.kubeconfig:
            raise EntriesError(
                f"{entry.name} is {EMBEDDED} and not the first; put it first, because the first cluster keeps"
                " the accounts and there is one embedded cluster at most."
            )
    return entries


def text(entries: Iterable[Entry]) -> str:
    """Return what `parse` reads as these entries."""
    return ",".join(map(str, entries))


def _entry(word: str) -> Entry:
    name, equals, source = word.partition("=")
    if not equals or not source:
        raise EntriesError(f"{word!r} does not say which cluster it is; write {FORM}.")
    if names.dns_label(name):
        raise EntriesError(
            f"{name!r} cannot be a cluster's name, which is part of addresses; use at most 63 lower-case letters,"
            " digits and '-', and no '-' at either end."
        )
    if source == EMBEDDED:
        return Entry(name)
    # A colon alone says nothing of a way: names of contexts have them too.
    before, colon, last = source.rpartition(":")
    way = last if colon and last in WAYS else ""
    kubeconfig, _, context = (before if way else source).partition("#")
    if kubeconfig in ("", EMBEDDED):
        raise EntriesError(f"{word!r} names a context or a way but no kubeconfig; write {FORM}.")
    return Entry(name, kubeconfig, context, way)
