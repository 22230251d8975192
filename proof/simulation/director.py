"""What happens next, drawn from a seed: who takes a step, what somebody asks for, what goes wrong.

Each move is chosen from what can be done in the world as it is, so that the
story that comes of it can be played again without the director.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from proof.simulation import story
from proof.simulation.checks.lies import LIES
from proof.simulation.parts import troubles
from proof.simulation.people.client import KINDS, Client, Habits, Request, setup
from proof.simulation.story import Move
from proof.simulation.world import World

S = 1_000_000  # microseconds
REQUESTS_FOR_A_JOB = 1.8  # as the wishes' weights are
FARTHEST_S = 600  # that the wall clock is set


@dataclass(frozen=True)
class Weights:
    """How much of everything there is in a world; probabilities are for each step of a process.

    A world that is `one_sided` has much more of some kinds of wishes and
    faults, and others not at all: what two of a kind do to each other is met
    where they are not lost among hundred others.
    """

    nodes: tuple[int, ...] = (3, 8, 50)  # each as often
    remote: float = 0.25
    forgets: float = 0.5  # of these
    tight: float = 0.5
    pages: float = 0.2
    one_sided: float = 0.7
    faith: tuple[float, ...] = (0.0, 0.3, 0.8)  # how often people go on with the same object
    fresh: tuple[float, ...] = (0.0, 0.0, 0.5)  # how often they take one that has just changed
    collide: float = 0.5  # of what people ask for in the middle of a step: of what has just changed
    burst: float = 0.1  # of steps in whose middle others do something: a dozen of them
    replaced: float = 0.3  # of deletions of what somebody made: he makes it again soon, as `kubectl replace --force`
    twins: float = 0.5  # of processes that are stopped in the middle of a step: another one takes their place
    long: tuple[float, ...] = (0.03, 0.03, 0.3, 0.8)  # how many pods run for hours; what runs is judged in silence
    jobs_an_hour: tuple[float, ...] = (200.0, 600.0, 2000.0)  # of an episode, with 50 nodes; each as often
    episode_s: tuple[float, float] = (60.0, 900.0)
    steps: int = 1500  # of an episode at most, so that dense worlds do not take the time of many others
    wishes: int = 100  # the same of a calm one
    calm: float = 0.1  # the share of episodes in which nothing goes wrong
    kill: float = 0.002
    start: float = 0.05  # of what is dead, when others take a step
    away_for_long: float = 0.5  # of those that are killed: nobody starts them for as long as a stall lasts
    twin: float = 0.0005
    second_agent: float = 0.0002
    die_within: float = 0.004
    refuse: float = 0.004
    nested: float = 0.03
    clean: float = 0.15  # of what comes between two statements
    message: float = 0.006
    stall: float = 0.002
    freeze: float = 0.001  # the same in the middle of a step
    stall_s: tuple[float, float] = (5.0, 60.0)
    away: float = 0.0005
    back: float = 0.02
    clock: float = 0.0005
    rights: float = 0.0005
    trouble: float = 0.004  # of requests to a cluster's API server, where the system works from elsewhere
    harm: float = 0.001  # to the process node
    lie: float = 0.001  # of a node
    restore: float = 0.01  # of what somebody else's right was before
    slow: float = 0.15  # time passes although somebody has something to do
    ask_faults: float = 0.02
    ask_twice: float = 0.02


USUAL = Weights()
# A plain world, by which speed is measured: nothing is small, and nobody looks on but those who always do.
PLAIN = Weights(
    nodes=(50,),
    remote=0.0,
    tight=0.0,
    pages=0.0,
    one_sided=0.0,
    faith=(0.0,),
    fresh=(0.0,),
    collide=0.0,
    burst=0.0,
    replaced=0.0,
    twins=0.0,
    long=(0.03,),
    jobs_an_hour=(200.0,),
    episode_s=(300.0, 1800.0),
    calm=0.3,
    steps=10**9,
    wishes=10**9,
)


def of_worlds(*, plain: bool = False, remote: bool = False) -> Weights:
    """Return how much of everything there is in worlds that are plain, or in which the system works from elsewhere."""
    weights = PLAIN if plain else USUAL
    return replace(weights, remote=1.0) if remote else weights


FAULTS = (
    *("kill", "twin", "die_within", "refuse", "nested", "clean", "message", "stall", "freeze", "away"),
    *("clock", "rights", "harm", "lie", "second_agent", "slow", "ask_faults", "ask_twice"),
)
REMOTE_FAULTS = ("trouble",)
FACTORS = (0.0, 1.0, 1.0, 5.0)  # of a kind of wish or fault in a one-sided world
MOST = 0.3  # of steps that meet one kind of fault


class Director:
    """Chooses the moves of one world."""

    def __init__(self, seed: int, hours: float, weights: Weights = USUAL) -> None:
        self.random = random.Random(seed)
        # By a chance of its own, so that the other worlds stay what they were.
        is_remote = random.Random(f"elsewhere {seed}").random() < weights.remote
        self.setup = story.Setup(
            nodes=self.random.choice(weights.nodes),
            seed=seed,
            is_tight=self._happens(weights.tight),
            has_pages=self._happens(weights.pages) and not is_remote,
            is_remote=is_remote,
            forgets=is_remote and self._happens(weights.forgets),
        )
        is_one_sided = self._happens(weights.one_sided)
        habits = Habits(*map(self.random.choice, (weights.faith, weights.fresh, weights.long)))
        self.weights = self._one_sided(weights) if is_one_sided else weights
        wishes = self._wishes() if is_one_sided else {}
        self.client = Client(random.Random(self.random.random()), wishes, habits)
        self.hours = hours
        self.next_ask = self.rate = 0.0
        self.again: list[Request] = []
        self.other_role: list[str] = []  # users who are no submitters for a while
        self.stalled: dict[str, float] = {}  # processes that do nothing, and until when
        self.absent: dict[str, float] = {}  # processes that stay dead, and until when
        self.woken: set[str] = set()  # those that did nothing and have not gone on yet

    def _one_sided(self, weights: Weights) -> Weights:
        faults = (*FAULTS, *(REMOTE_FAULTS if self.setup.is_remote else ()))
        factors = {name: self.random.choice(FACTORS) for name in faults}
        return replace(weights, **{n: min(MOST, getattr(weights, n) * f) for n, f in factors.items()})

    def _wishes(self) -> dict[str, float]:
        """What people often want, and what never; there is always work."""
        factors = {name: self.random.choice(FACTORS) for name in sorted(KINDS)}
        return {name: KINDS[name].weight * f for name, f in factors.items()} | {"submit one pod": 12}

    def moves(self, world: World) -> Iterator[Move]:
        """Yield moves; each is to be done before the next is asked for."""
        yield story.Rest(2 * S)
        for request in setup():
            yield story.Ask(request)
        while world.clock.monotonic() < self.hours * 3600:
            until = world.clock.monotonic() + self.random.uniform(*self.weights.episode_s)
            self.rate = self.random.choice(self.weights.jobs_an_hour) * REQUESTS_FOR_A_JOB / 3600
            self.rate *= (self.setup.nodes / 50) ** 0.5
            calm = self.random.random() < self.weights.calm
            yield from (self._calm if calm else self._rough)(world, until)
            yield story.Settle()

    def _calm(self, world: World, until: float) -> Iterator[Move]:
        wishes = 0
        while (now := world.clock.monotonic()) < until and wishes < self.weights.wishes:
            self._want(now)
            if now >= self.next_ask:
                wishes += 1
                yield story.Ask(self._request(world))
                self._schedule_request(now)
            yield story.Rest(max(1, round((min(self.next_ask, until) - now) * S)))

    def _rough(self, world: World, until: float) -> Iterator[Move]:
        steps = 0
        while (now := world.clock.monotonic()) < until and steps < self.weights.steps:
            self._want(now)
            if now >= self.next_ask:
                yield self._ask(world)
                self._schedule_request(now)
            yield from self._misfortune(world)
            ready = self._awake(world.ready(), now)
            if ready and not self._happens(self.weights.slow):
                steps += 1
                yield self._run(world, ready)
            elif ready:
                yield story.Pass(self.random.choice((1000, 1000, 20_000, 200_000, 2 * S)))
            else:
                yield story.Pass(max(1, round((min(self.next_ask, self._due(world), until) - now) * S)))

    def _awake(self, ready: list[str], now: float) -> list[str]:
        """Leave out who is stopped for a while, as by SIGSTOP or on a machine that swaps."""
        if ready and self._happens(self.weights.stall):
            self.stalled[self.random.choice(ready)] = now + self.random.uniform(*self.weights.stall_s)
        self.woken.update(name for name, until in self.stalled.items() if until <= now)
        self.stalled = {name: until for name, until in self.stalled.items() if until > now}
        return [name for name in ready if name not in self.stalled]

    def _due(self, world: World) -> float:
        """When somebody who is not stopped has something to do, or somebody goes on."""
        return min([world.due(but=self.stalled), *self.stalled.values()])

    def _happens(self, probability: float) -> bool:
        return self.random.random() < probability

    # What people want.

    def _want(self, now: float) -> None:
        """Wake up from a pause."""
        if now - self.next_ask > 600:
            self._schedule_request(now)

    def _schedule_request(self, now: float) -> None:
        self.next_ask = now + self.random.expovariate(self.rate)

    def _request(self, world: World, *, collides: bool = False) -> Request:
        if self.again and self._happens(0.5):
            return self.again.pop()
        wanted = self.client.collide if collides else self.client.wish
        wish = msgspec.json.encode(wanted(world.picture)).decode()
        request = msgspec.json.decode(world.picture.symbolic(wish).encode(), type=Request)
        if self._happens(self.weights.ask_twice):
            self.again.append(request)
        made_by = self.client.maker(request)
        if made_by is not None and self._happens(self.weights.replaced):
            self.again.append(made_by)
        return request

    def _ask(self, world: World) -> Move:
        request = self._request(world)
        if not self._happens(self.weights.ask_faults):
            return story.Ask(request)
        # Who got no answer asks again.
        self.again.append(request)
        if self._happens(0.5):
            return story.Ask(request, dies=self._death(), at=self.random.randrange(6))
        return story.Ask(request, fails=self._refusal(), at=self.random.randrange(6))

    # Who goes on.

    def _run(self, world: World, ready: list[str], depth: int = 0) -> Move:
        name = self.random.choice(ready)
        weights = self.weights
        if depth == 0 and name in self.woken:
            self.woken.remove(name)
            # Who is far behind meets most of what he is not prepared for; history may be cleaned under him.
            others = [story.Clean() if self._happens(0.5) else self._other(world, name) for _ in range(2)]
            return story.Run(name, between=tuple(others), at=self.random.randrange(6))
        if depth == 0 and self._happens(weights.freeze):
            frozen = story.Rest(round(self.random.uniform(*weights.stall_s) * S))
            twin = (story.Start(f"{name}+2"),) if name in world.queues and self._happens(weights.twins) else ()
            return story.Run(name, between=(*twin, frozen, story.Clean()), at=self.random.randrange(6))
        if self._happens(weights.die_within):
            return story.Run(name, dies=self._death(), at=self.random.randrange(8))
        if self._happens(weights.refuse):
            return story.Run(name, fails=self._refusal(), at=self.random.randrange(8))
        if depth == 0 and self._happens(weights.nested):
            number = self.random.randrange(8, 17) if self._happens(weights.burst) else self.random.randrange(1, 4)
            others = [self._other(world, name) for _ in range(number)]
            return story.Run(name, between=tuple(others), at=self.random.choice((1, 1, 1, 2, 3, 5)))
        return story.Run(name)

    def _other(self, world: World, name: str) -> Move:
        """What happens while a process is in the middle of a step."""
        others = [other for other in world.ready() if other != name]
        if self._happens(self.weights.clean):
            return story.Clean()
        if not others or self._happens(0.4):
            return story.Ask(self._request(world, collides=self._happens(self.weights.collide)))
        return self._run(world, others, depth=1)

    def _death(self) -> str:
        by_requests: tuple[str, ...] = ("asks", "asks", "answered") if self.setup.is_remote else ()
        return self.random.choice(("reads", "writes", "writes", "committed", *by_requests))

    def _refusal(self) -> str:
        return self.random.choice(("full", "locked"))

    # What goes wrong between steps.

    def _misfortune(self, world: World) -> Iterator[Move]:
        yield from self._of_processes(world, world.clock.monotonic())
        yield from self._of_messages(world)
        yield from self._of_surroundings()
        if self.setup.is_remote and self._happens(self.weights.trouble):
            yield self._trouble()

    def _of_processes(self, world: World, now: float) -> Iterator[Move]:
        weights, alive = self.weights, list(world.processes)
        dead = [name for name in world.names if name not in alive and self.absent.get(name, now) <= now]
        if dead and self._happens(weights.start):
            yield story.Start(self.random.choice(dead))
        if alive and self._happens(weights.kill):
            killed = self.random.choice(alive)
            if self._happens(weights.away_for_long):
                self.absent[killed] = now + self.random.uniform(*weights.stall_s)
            yield story.Kill(killed)
        if "agent" in world.names and self._happens(weights.second_agent):
            yield story.Start(f"agent+{self.random.randrange(2, 4)}")
        if self._happens(weights.twin):
            yield story.Start(f"{self.random.choice(world.queues)}+{self.random.randrange(2, 4)}")

    def _of_messages(self, world: World) -> Iterator[Move]:
        weights = self.weights
        if self._happens(weights.message):
            yield story.Messages(self.random.choice(("drop", "double", "delay")), self.random.randrange(20))
        if world.broker.is_away and self._happens(weights.back):
            yield story.Messages("back")
        elif self._happens(weights.away):
            yield story.Messages(self.random.choice(("away", "lost")))

    def _of_surroundings(self) -> Iterator[Move]:
        weights = self.weights
        if self._happens(weights.harm):
            what = self.random.choice(("kill", "kill", "shim", "reboot"))
            yield story.Harm(what, self.random.randrange(20))
        if self._happens(weights.lie):
            yield story.Lie(self.random.choice(list(LIES)), self.random.randrange(100))
        if self._happens(weights.clock):
            yield story.SetClock(self.random.randrange(-FARTHEST_S, FARTHEST_S) * S)
        if self._happens(weights.rights):
            user = self.random.choice(("alice", "bob"))
            self.other_role.append(user)
            yield self._grant(user)
        if self.other_role and self._happens(weights.restore):
            yield story.Grant(self.other_role.pop(), "submitter")

    def _trouble(self) -> Move:
        kinds = troubles.KINDS if self.setup.forgets else troubles.LOSSLESS
        what = self.random.choice(kinds)
        requests = self.random.choice((1, 1, 3, 10, 40))
        us = round(self.random.choice((0.1, 1.0, 8.0, 20.0)) * S) if what == troubles.SLOW else 0
        return story.Trouble(what, 0 if what in (troubles.CUT, troubles.FORGETS) else requests, us)

    def _grant(self, user: str) -> Move:
        if self._happens(0.5):
            return story.Grant(user, "submitter", lost=True)
        return story.Grant(user, self.random.choice(("viewer", "operator")))
