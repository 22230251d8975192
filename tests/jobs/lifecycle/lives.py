"""What is known of one job from the log, and what may and must still come of what happened to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.jobs.lifecycle import reference

TOLD = re.compile(r"(?P<event>\w+): (?P<what>.*)\. The policy for it is (?P<action>\w+)( after \S+)?\.")
OF_TASKS = ("TaskCompleted", "TaskFailed")
CALLED_OFF = ("PodFailed", "PodEvicted")  # what waits for a delay since, until the pod runs again (§3.5)


@dataclass
class Ask:
    """An answer that a policy has for something that happened.

    It *may* be given from `due` on (epoch ms; None until a controller may have
    heard of it), and *must* be given by `late` if it is certain: whether a
    task completed or failed is judged when it is heard of, by the pods as they
    are then.
    """

    event: str
    action: str
    task: str
    pod: str
    partition: int | None
    version: int  # of the run in which it happened
    revision: int
    delay: int
    certain: bool = True
    noted: bool = False  # people were told that it waits
    due: int | None = None
    late: int = 0

    @property
    def scope(self):
        return reference.scope(self.action, self.task, self.pod, self.partition)

    def is_about(self, what):
        """Say whether a sentence tells of what happened here."""
        if self.event in OF_TASKS:
            return f" task {self.task} " in what
        return not self.pod or what.startswith(f"{self.pod} ")

    def tells_of(self, other):
        """Say whether both are about what happened to one task, of which is told once."""
        return self.event in OF_TASKS and (self.event, self.task) == (other.event, other.task)

    def hear(self, now):
        """Know that a controller may hear of it now."""
        self.due = min(self.due or now + self.delay, now + self.delay)
        self.late = max(self.late, now + self.delay)


@dataclass
class Life:
    """One job."""

    key: str
    uid: str
    specs: list  # revisions and what was wished from there on, from the one on that the controller knows
    status: dict = field(default_factory=dict)
    deleting: bool = False
    asks: list[Ask] = field(default_factory=list)
    told_pending: set = field(default_factory=set)  # uids of pods of which it was told that they wait for too long
    given: list = field(default_factory=list)  # the answers that this step gives, and up to where it can know
    executing: set = field(default_factory=set)  # actions that this step carries out
    must: str = ""  # the phase that has to follow in this step

    @property
    def spec(self):
        return self.specs[-1][1]

    def wish(self, revision, spec):
        """Know what is wished of the job from a revision on."""
        if spec != self.spec:
            self.specs.append((revision, spec))

    @property
    def phase(self):
        return self.status.get("state", {}).get("phase", "")

    @property
    def version(self):
        return self.status.get("version", 0)

    def ask(self, new):
        """Take in what a policy answers; of what waits for one pod there is one place (§3.5)."""
        if new.delay:
            waiting = [each for each in self.asks if each.delay and each.pod == new.pod]
            same = [each for each in waiting if each.action == new.action]
            # Of a task it is judged when it is heard of: what is known of its pods by then may be something else.
            if any((each.certain or each.noted) and each.event not in OF_TASKS for each in same):
                new.certain, new.noted = False, True
            elif same:
                new.certain = False
            elif new.certain:
                self.asks = [each for each in self.asks if each not in waiting]
            else:
                for each in waiting:
                    each.certain = False
        self.asks.append(new)

    def runs_again(self, pod):
        """Know that a pod of a name runs: what waits since it failed or was evicted is called off."""
        self.asks = [each for each in self.asks if not (each.delay and each.pod == pod and each.event in CALLED_OFF)]

    def answer(self, event, action, what, known, now):
        """Take in that people are told of an answer; say what is wrong with it."""
        fitting = [each for each in self.asks if (each.event, each.action) == (event, action) and each.is_about(what)]
        if unnoted := [each for each in fitting if each.delay and not each.noted]:
            self._note(unnoted[0])
            return ""
        given = next((each for each in fitting if each.due is not None and each.due <= now), None)
        if given is None and any(each.delay and each.event in OF_TASKS for each in fitting):
            return ""  # of a task it may be told for each of its pods that it waits
        if given is None:
            early = ", before its time" if fitting else ", for which there is no cause, or which was given before"
            return f"answers {event} of {what!r} with {action}{early}"
        self.asks.remove(given)
        self.given.append((given, known))
        self.execute(action)
        return ""

    def _note(self, ask):
        """Know that an answer waits for its time: what has the same action for the same pod waits with it."""
        for each in self.asks[self.asks.index(ask) :]:
            if each.delay and ((each.pod, each.action) == (ask.pod, ask.action) or ask.tells_of(each)):
                each.noted = True
                each.certain &= each is ask

    @property
    def left(self):
        """What is still to be answered: whatever else was to be done with the parts that this step does something with is called off."""
        return [
            each
            for each in self.asks
            if not any(
                each.revision <= known and (each.scope == given.scope or given.tells_of(each))
                for given, known in self.given
            )
        ]

    def end_step(self, known):
        """Know that a step is over, with which the controller has read the log up to a revision."""
        while len(self.specs) > 1 and self.specs[1][0] <= known:
            del self.specs[0]
        self.asks, self.given, self.executing = self.left, [], set()

    def execute(self, action):
        """Know that this step carries an action out."""
        self.executing.add(action)
        # A restart of a partition without pods changes nothing (§2.3).
        if self.phase in reference.ALIVE and not self.deleting and action != "RestartPartition":
            self.must = reference.LEADS.get(action, self.must)

    def forget(self):
        """Drop the answers that concern nobody any more: of runs that were ended, and of a job that ends its pods."""
        if self.phase not in reference.HEEDING:
            self.asks = []
        for ask in self.asks if self.deleting else ():
            ask.certain = False  # who has not heard of it yet may still give it
        self.asks = [each for each in self.asks if each.version >= self.version]
