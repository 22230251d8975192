"""A story: all that happens to a world, as data. The same story gives the same log, whoever plays it.

A move says what somebody does or what goes wrong, and makes sense in any
world: one that finds nothing to do does nothing. So a story can be shortened
by leaving moves out.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from proof.simulation.people.client import Request


class Base(Struct, frozen=True, omit_defaults=True, tag_field="do", tag=str.lower):
    """One move."""


class Pass(Base, frozen=True):
    """Time passes."""

    us: int


class Rest(Base, frozen=True):
    """Time passes, and every process does at once what it has to do: a stretch in which nothing goes wrong."""

    us: int


class Run(Base, frozen=True):
    """A process takes one step, which other moves may come between.

    `between` happens before statement number `at` of those that lie outside
    transactions, as the start of one does. `dies` says where in the step the
    process is killed: before it "reads" or "writes" with statement number `at`
    of that kind, when it has "committed", before it "asks" another cluster's API
    server for the `at`-th time, or when that is "answered". `fails` says how the database
    refuses the writing statement: "full" or "locked".
    """

    process: str
    between: tuple[Move, ...] = ()
    dies: str = ""
    fails: str = ""
    at: int = 0


class Ask(Base, frozen=True):
    """Somebody sends a request to the API server; the rest is as with Run."""

    request: Request
    between: tuple[Move, ...] = ()
    dies: str = ""
    fails: str = ""
    at: int = 0


class Kill(Base, frozen=True):
    """A process dies by SIGKILL."""

    process: str


class Start(Base, frozen=True):
    """A process starts, unless it lives."""

    process: str


class Messages(Base, frozen=True):
    """What happens to the messages in the queues: "drop", "double" or "delay" one, or all are "lost"; Redis is "away", "back"."""

    what: str
    index: int = 0


class Clean(Base, frozen=True):
    """Retention runs: what is older than history is kept goes, as by beat each minute, but now."""


class SetClock(Base, frozen=True):
    """The wall clock is set."""

    by_us: int


class Harm(Base, frozen=True):
    """Something happens to the process node: "kill" a container, "shim" (nobody sees how it ends), "reboot"."""

    what: str
    index: int = 0


class Lie(Base, frozen=True):
    """A node reports what is not true; see `proof.simulation.checks.lies` for what there is to say, and of which object it is."""

    what: str
    index: int = 0


class Grant(Base, frozen=True):
    """A user is given a role in a namespace ("*": everywhere), or loses it."""

    user: str
    role: str
    namespace: str = "*"
    lost: bool = False


class Trouble(Base, frozen=True):
    """What becomes of so many requests to another cluster's API server, see `proof.simulation.parts.troubles`; `us` is how slow it is."""

    what: str
    requests: int = 0
    us: int = 0


class Settle(Base, frozen=True):
    """All faults end and nobody wants anything; what has begun comes to its end, and is judged."""


Move: TypeAlias = (
    Pass | Rest | Run | Ask | Kill | Start | Messages | Clean | SetClock | Harm | Lie | Grant | Trouble | Settle
)


class Setup(Struct, frozen=True, omit_defaults=True):
    """How a world begins."""

    nodes: int = 50
    seed: int = 0  # of names, uids, and of what processes on the process node do
    has_agent: bool = True
    is_tight: bool = False  # see proof.simulation.tight
    has_pages: bool = False  # people have live pages open, which costs much
    is_remote: bool = False  # controllers and scheduler work on the cluster from elsewhere, by its API
    forgets: bool = False  # its API server forgets what they have not heard yet, so that they never hear of it


class Story(Struct, frozen=True, omit_defaults=True):
    """A world from its beginning to its end; `broken` says what is found then, if anything.

    `plant` is the defect that has to be put back for that, of `proof.simulation.planted`.
    """

    setup: Setup
    moves: tuple[Move, ...]
    broken: str = ""
    plant: str = ""
    about: str = ""


def encode(story: Story) -> bytes:
    """Return a story as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(story), indent=1)


decode = msgspec.json.Decoder(Story).decode
