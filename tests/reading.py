"""What somebody reads on pages: a block a test in a golden file, which `pytest --update-golden` writes anew."""

import re
from pathlib import Path

import lxml.html
import pytest
from django.test import Client

from cluster import clock
from kube.meta import parse_time
from proof.harness import clocks
from proof.harness.clocks import ManualClock

TESTS = Path(__file__).parent
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
DAY_MS = 86_400_000
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def text(element):
    return "nothing" if element is None else " ".join(" ".join(element.itertext()).split()) or "–"


def without_now(found):
    """A time that is not given by a test is another in each run."""
    at = parse_time(found[0].removesuffix(" UTC").replace(" ", "T") + "Z")
    return "TIME" if abs(at - clock.milliseconds()) < DAY_MS else found[0]


def cells(row):
    return " / ".join(text(cell) for cell in row if isinstance(cell.tag, str))


PARTS = {
    "rows": lambda tree: " · ".join(cells(row) for row in tree.xpath("//tbody[@id='table-rows']/tr")) or "–",
    "names": lambda tree: " ".join(map(text, tree.xpath("//tbody[@id='table-rows']/tr/th"))) or "–",
    "actions": lambda tree: " ".join(sorted({*tree.xpath("//*[@id='content']//form/@action | //@formaction")})) or "–",
}  # fmt: skip


class Reading:
    """What a test reads, compared line by line; a part of a page is one of `PARTS`, or an element by its id or tag.

    reads(alice, "/queues/vision/ queue-share rows", "/queues/ queue-vision")
    reads(answer, "toasts")
    """

    def __init__(self, node, *, updates):
        self.path = TESTS / "golden" / "pages" / f"{'-'.join(node.path.relative_to(TESTS).with_suffix('').parts)}.txt"
        self.title, self.updates, self.lines = node.name, updates, []
        self.blocks = {}
        if self.path.exists():
            written = self.path.read_text().split("== ")[1:]
            self.blocks = {title: lines for title, *lines in (each.rstrip().splitlines() for each in written)}
        self.wanted = self.blocks.get(self.title, [])

    def __call__(self, source, *looks):
        for look in looks:
            address, *parts = look.split() if isinstance(source, Client) else ("", *look.split())
            answer = source.get(address) if address else source
            tree = lxml.html.document_fromstring(answer.content.decode())
            who = getattr(source, "user", None)
            where = " ".join(filter(None, ("" if who is None or who.is_superuser else who.username, address)))
            for part in parts:
                found = (
                    PARTS[part](tree)
                    if part in PARTS
                    else text(next(iter(tree.xpath("//*[@id=$part or name()=$part]", part=part)), None))
                )
                self.read(f"{where} {part}: {found}".strip())

    def read(self, line):
        self.lines.append(UID.sub("UID", TIME.sub(without_now, line)).rstrip())
        wanted = "".join(self.wanted[len(self.lines) - 1 : len(self.lines)])
        assert self.updates or self.lines[-1] == wanted, f"{self.lines[-1]}\n\ninstead of\n\n{wanted}"

    def end(self):
        if self.updates and self.lines:
            self.blocks[self.title] = self.lines
            self.path.parent.mkdir(exist_ok=True)
            blocks = ("\n".join([f"== {title}", *lines, ""]) for title, lines in sorted(self.blocks.items()))
            self.path.write_text("\n".join(blocks))
        else:
            assert len(self.lines) == len(self.wanted), f"{self.title} does not read all of {self.path.name}"


@pytest.fixture
def reads(request):
    """Read pages while time stands, so that what is made at once is in one order."""
    reading = Reading(request.node, updates=request.config.getoption("--update-golden"))
    with clocks.using(ManualClock()):
        yield reading
    reading.end()
