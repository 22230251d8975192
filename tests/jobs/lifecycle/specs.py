"""Jobs by chance, small and odd, and such as admission accepts."""

from __future__ import annotations

import hypothesis.strategies as st

from jobs.rules import admission
from tests.jobs.builders import job, refusals, task

ACTIONS = (
    "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "AbortJob",
    "TerminateJob", "CompleteJob", "ResumeJob",
)  # fmt: skip
EVENTS = ("PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed")
CODES = (1, 3, 137)
TIMEOUTS = (None, None, "30s", "10m")


@st.composite
def policies(draw):
    """A list of policies: `*` alone, or some events, each once; beside them exit codes."""
    wild = draw(st.integers(0, 4)) == 0
    events = ["*"] if wild else draw(st.lists(st.sampled_from(EVENTS), unique=True, max_size=2))
    codes = draw(st.lists(st.sampled_from(CODES), unique=True, max_size=1))
    answered = [{"event": each} for each in events] + [{"exitCode": code} for code in codes]
    return [draw(with_action(each)) for each in draw(st.permutations(answered))]


@st.composite
def with_action(draw, answered):
    policy = {**answered, "action": draw(st.sampled_from(ACTIONS))}
    timeout = draw(st.sampled_from(TIMEOUTS))
    return policy | ({"timeout": timeout} if timeout else {})


@st.composite
def tasks(draw, name, before):
    """A task, which may wait for those before it."""
    fields = {"policies": draw(policies())} if draw(st.booleans()) else {}
    replicas = draw(st.sampled_from((0, 1, 2, 2, 3)))
    if draw(st.integers(0, 4)) == 0:
        fields["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 1}
        replicas = 2
    elif draw(st.booleans()):
        fields["minAvailable"] = draw(st.integers(0, replicas))
    if before and draw(st.integers(0, 2)) == 0:
        names = draw(st.lists(st.sampled_from(before), unique=True, min_size=1))
        fields["dependsOn"] = {"name": names, "iteration": draw(st.sampled_from(("any", "all")))}
    if draw(st.booleans()):
        fields["maxRetry"] = draw(st.integers(1, 3))
    return task(name, replicas, pod={"restartPolicy": "OnFailure"}, **fields)


@st.composite
def specs(draw):
    """What is wished of a job."""
    names = ("a", "b", "c")[: draw(st.integers(1, 3))]
    wanted = [draw(tasks(name, names[:number])) for number, name in enumerate(names)]
    total = sum(each["replicas"] for each in wanted)
    fields = {"policies": draw(policies()), "maxRetry": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        fields["minAvailable"] = draw(st.integers(0, total))
    if draw(st.integers(0, 3)) == 0:
        fields["minSuccess"] = draw(st.integers(1, max(total, 1)))
    if draw(st.integers(0, 3)) == 0:
        fields["ttlSecondsAfterFinished"] = draw(st.sampled_from((0, 60)))
    fields["plugins"] = {name: [] for name in draw(st.sets(st.sampled_from(("svc", "ssh", "env"))))}
    return wanted, fields


def submitted(name, spec):
    """Return a job that a person submits, with its defaults; None where admission refuses it."""
    wanted, fields = spec
    obj = job(*wanted, name=name, **fields)
    if refusals(obj):
        return None
    admission.default(obj, None, None)
    return obj
