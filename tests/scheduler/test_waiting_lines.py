"""The lines that pages show against the order in which a cycle really tries groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.store import Create, Delete, Patch, store
from kube import resources
from scheduler import waiting_lines
from scheduler.waiting_lines import Lines
from tests.campaign import examples

from .world import World, configuration, group, node, pod, priority_class, queue

SLA = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: sla\n    arguments: {sla-waiting-time: 1h}\n'
CLASSES = (priority_class("high", 9), priority_class("low", -1), priority_class("usual", 3, globalDefault=True))


def stored(*objects):
    store.write(*(Create(kind, obj) for kind, obj in objects))


def waiting(name, *, minute=0, **spec):
    return group(name, phase="Pending", created=f"2026-01-01T00:{minute:02}:00Z", **spec)


def keys(lines, name="default"):
    return [each.name for each, _ in lines.line(name, 100)]


@pytest.fixture(autouse=True)
def _lines(db):
    stored((resources.NAMESPACES, {"metadata": {"name": "ns"}}))
    waiting_lines.forget()
    yield
    waiting_lines.forget()


def now():
    with store.reading() as head:
        return Lines.loaded(head)


def test_urgent_groups_come_first_then_old_ones():
    urgent = waiting("urgent", minute=5, priorityClassName="high")
    stored(*CLASSES, waiting("young", minute=9), waiting("old", minute=1), urgent)
    stored(
        waiting("lazy", priorityClassName="low"), waiting("elsewhere", queue="other"), group("runs", phase="Running")
    )
    assert keys(now()) == ["urgent", "old", "young", "lazy"]
    assert keys(now(), "other") == ["elsewhere"]
    position = now().position("ns/young")
    assert (position.number, position.of) == (3, 4)
    assert [(each.name, value) for each, value in position.before] == [("urgent", 9), ("old", 3)]
    assert now().position("ns/runs") is None


def test_lines_follow_the_log_as_if_they_were_loaded_anew():
    stored(*CLASSES, *(waiting(f"g{n}", minute=n) for n in range(4)))
    with store.reading() as head, waiting_lines.current(head) as lines:
        assert lines.number("default") == 4
    store.write(
        Patch(resources.POD_GROUPS, "ns", "g1", {"status": {"phase": "Running"}}, "status"),
        Patch(resources.POD_GROUPS, "ns", "g3", {"spec": {"priorityClassName": "high"}}),
        Patch(resources.PRIORITY_CLASSES, "", "usual", {"value": 12}),
        Patch(resources.POD_GROUPS, "ns", "g0", {"spec": {"queue": "other"}}),
        Delete(resources.POD_GROUPS, "ns", "g2"),
    )
    with store.reading() as head, waiting_lines.current(head) as followed:
        assert followed is lines
        assert keys(followed) == keys(now()) == ["g3"]
        assert keys(followed, "other") == keys(now(), "other") == ["g0"]


def test_what_minima_ask_for_is_added_up():
    for name, cpu in (("a", "2"), ("b", "500m")):
        stored(waiting(name, minResources={"cpu": cpu, "requests.cpu": cpu, "nvidia.com/gpu": "1"}))
    assert now().requested("default") == {"cpu": 2500, "nvidia.com/gpu": 2}
    assert now().requested("other") == {}


@examples(150, here=12)
@given(
    st.lists(st.tuples(st.sampled_from(["", "high", "low"]), st.integers(0, 5), st.booleans()), min_size=1, max_size=8),
    st.booleans(),
)
def test_the_cycle_starts_groups_in_the_order_of_the_line(drawn, has_sla):
    """One pod fits at a time: who is started next is the first in the line."""
    groups = [
        waiting(f"g{n}", minute=minute, **({"priorityClassName": name} if name else {}))
        for n, (name, minute, _) in enumerate(drawn)
    ]
    for (_, obj), (_, _, asks) in zip(groups, drawn, strict=True):
        obj["metadata"]["annotations"] = {"sla-waiting-time": "2m"} if asks else {}
    policy = [configuration(SLA)] if has_sla else []
    world = World(node("n1", cpu="1"), queue(), *CLASSES, *policy, *groups)
    world.put(*(pod(f"p{n}", f"g{n}", "1") for n in range(len(groups))))
    lines = Lines(0)
    for kind, obj in (*CLASSES, *policy, *groups):
        lines.take(world._change((kind.id, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), "ADDED", obj))  # fmt: skip
    expected = [each.name for each, _ in lines.line("default", 100)]
    started = []
    for _ in groups:
        world.cycle(seconds=1)
        (name,) = world.where()
        started.append(f"g{name[1:]}")
        world.remove(resources.PODS, name)
        world.remove(resources.POD_GROUPS, started[-1])
    assert started == expected
