"""Budgets for disruptions, and pods that have just started: who is not evicted for others."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import disruption
from kube import resources
from kube.errors import ApiError
from kube.meta import timestamp
from scheduler.engine.message import people
from tests.campaign import examples

from .test_preempt import low, running, waiting, world
from .world import START, configuration, group, node, queue

READY = {"type": "Ready", "status": "True"}
WEB = {"app": "web"}
PLUGINS = "actions: enqueue, allocate, preempt\ntiers:\n- plugins:\n"
UNLISTED, LISTED = PLUGINS + "  - name: gang\n", PLUGINS + "  - name: pdb\n  - name: cdp\n"


def budget(name="web", selector=WEB, **spec):
    return resources.DISRUPTION_BUDGETS, {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"selector": {"matchLabels": selector}, **spec},
    }


def labelled(objects, labels=WEB, *, ready=True, pods=None):
    """Give running pods, or those with these names, labels; and have them ready."""
    for kind, obj in objects:
        is_running = kind is resources.PODS and "nodeName" in obj["spec"]
        if is_running and (pods is None or obj["metadata"]["name"] in pods):
            obj["metadata"]["labels"] = labels
            if ready:
                obj["status"]["conditions"] = [READY]
    return objects


def noted(objects, **annotations):
    """Give the pod groups among some objects annotations."""
    for kind, obj in objects:
        if kind is resources.POD_GROUPS:
            obj["metadata"]["annotations"] = {
                f"volcano.sh/{name.replace('_', '-')}": value for name, value in annotations.items()
            }
    return objects


@pytest.mark.shows("scheduler 3.11 pdb/budgets", "scheduler 3.11 pdb/no labels")
@pytest.mark.parametrize(
    ("objects", "victims"),
    [
        pytest.param([*labelled(low(4)), budget(minAvailable=4), *waiting()], [], id="none may go"),
        pytest.param(
            [*labelled(low(4)), budget(minAvailable=2), *waiting(2)], ["low-2", "low-3"], id="two may go"
        ),
        pytest.param([*labelled(low(4)), budget(minAvailable=2), *waiting(3)], [], id="two of three are too few"),
        pytest.param([*labelled(low(4)), budget(maxUnavailable=1), *waiting(2)], [], id="one may be away"),
        pytest.param([*labelled(low(4)), budget(maxUnavailable="50%"), *waiting(2)], ["low-2", "low-3"], id="half"),
        pytest.param([*labelled(low(4)), budget(), *waiting(3)], ["low-1", "low-2", "low-3"], id="one stays by default"),
        pytest.param(
            [*labelled(low(4)), budget("a", minAvailable=1), budget("b", minAvailable=3), *waiting(2)],
            [],
            id="of two budgets each must allow it",
        ),
        pytest.param([*labelled(low(4)), budget(selector={"app": "db"}, minAvailable=4), *waiting()], ["low-3"], id="others"),
        pytest.param(
            [*labelled(low(4), pods=("low-3",)), budget(minAvailable=1), *waiting()],
            ["low-2"],
            id="one that no budget is about goes instead",
        ),
        pytest.param(
            [*labelled(low(4), pods=("low-2", "low-3")), budget(minAvailable=1), *waiting()],
            ["low-1"],
            id="those without a budget go first",
        ),
        pytest.param(
            [*labelled(low(4, minimum=4)), budget(minAvailable=1), *waiting()],
            [],
            id="a gang stays whole of which not all may go",
        ),
        pytest.param(
            [*labelled(low(4, minimum=4)), budget(minAvailable=0), *waiting()],
            [f"low-{n}" for n in range(4)],
            id="a gang of which all may go goes",
        ),
        pytest.param(
            [*labelled(low(4), ready=False), budget(minAvailable=1), *waiting()],
            [],
            id="who is not ready stays while too few are",
        ),
        pytest.param(
            [
                *labelled(low(4), ready=False),
                budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"),
                *waiting(),
            ],
            ["low-3"],
            id="who is not ready may always go where the budget says so",
        ),
        pytest.param(
            [*noted(low(4), jdb_min_available="3"), *waiting(2)], [], id="the group says how many must stay"
        ),
        pytest.param(
            [*noted(low(4), jdb_min_available="50%"), *waiting(2)], ["low-2", "low-3"], id="the group says it as a share"
        ),
        pytest.param(
            [*noted(low(4), jdb_max_unavailable="1"), *waiting(1)], ["low-3"], id="the group says how many may be away"
        ),
        pytest.param(
            [*noted(low(4), jdb_min_available="some"), *waiting()],
            ["low-3"],
            id="what a group says that cannot be read protects nobody",
        ),
    ],
)  # fmt: skip
def test_who_goes_beside_budgets(objects, victims):
    here = world(*objects)
    here.cycle()
    assert here.going() == victims


def test_two_gangs_share_what_a_budget_allows():
    here = world(*labelled(low(4)), budget(minAvailable=3), *waiting(name="a"), *waiting(name="b"))
    here.cycle()
    assert here.going() == ["low-3"]
    here.gone()
    here.cycle()
    assert "a-0" in here.where()
    assert here.going() == [], "three are left, and three must stay"


def test_group_is_told_who_is_protected_and_by_what():
    here = world(
        *labelled(low(3)),
        *noted(low(1, name="own", minimum=0), jdb_min_available="1"),
        budget(minAvailable=2),
        *waiting(2),
    )
    here.cycle()
    assert people(here.condition()["message"]) == (
        "0 of 2 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1). Protected from being evicted "
        "for it: 2 pods by disruption budget ns/web, 1 pod by the budget of pod group ns/own."
    )


MORE_URGENT = [group("top", 2, phase="Running", priorityClassName="high"), *(running(f"top-{n}", "top") for n in range(2))]  # fmt: skip
APART = [*low(2, minimum=2), running("low-1", "low", node="n2")]
"""A gang of which a pod is on n1 and one on n2."""


@pytest.mark.parametrize(
    ("objects", "pods"),
    [
        pytest.param([*low(2), *low(1, name="far", node="n2")], 2, id="one on a node that the gang may not use"),
        pytest.param([*MORE_URGENT, *low(2, node="n2")], 0, id="all on such nodes"),
        pytest.param([*APART, running("top-0", "top")], 2, id="a gang that goes whole"),
        pytest.param([*low(1), *low(2, name="far", node="n2"), queue(reclaimable=False, capability={"cpu": "3"})], 3, id="the queue is full"),
    ],
)  # fmt: skip
def test_only_those_are_told_of_whose_going_could_help(objects, pods):
    """n1 has two CPU, and nobody tolerates the taint of n2."""
    here = world(*labelled(objects), budget(minAvailable="100%"), *waiting(), cpu="2", nodes=("n1", "n2"))
    here.put(node("n2", taints=[{"key": "t", "effect": "NoSchedule"}]))
    here.cycle()
    assert here.going() == []
    told = people(here.condition()["message"])
    assert (f"Protected from being evicted for it: {pods} pods by disruption budget ns/web." in told) == (pods > 0)
    assert ("Protected" in told) == (pods > 0)


def test_victims_are_found_when_the_budget_allows_it():
    here = world(*labelled(low(4)), budget(minAvailable=4), *waiting())
    here.cycle()
    here.put(budget(minAvailable=3))
    here.cycle()
    assert here.going() == ["low-3"]
    here.remove(resources.DISRUPTION_BUDGETS, "web")
    assert here.snapshot.budgets == {}


@pytest.mark.shows("scheduler 3.11 pdb/budgets")
@pytest.mark.parametrize(
    ("text", "victims"),
    [
        pytest.param(None, [], id="nothing is configured"),
        pytest.param(LISTED, [], id="listed"),
        pytest.param(UNLISTED, ["low-3"], id="not listed: while nobody else can be evicted"),
    ],
)
def test_a_budget_protects_in_any_case_where_pdb_is_listed(text, victims):
    here = world(*labelled(low(4)), budget(minAvailable=4), *waiting(), *([configuration(text)] if text else []))
    here.cycle()
    assert here.going() == victims


def test_a_budget_protects_without_pdb_as_long_as_there_are_others():
    """As kube-scheduler: whom no budget is about, or whom it allows to go, goes first."""
    objects = [
        *labelled(low(2, name="a", cpu="2")),
        *low(1, name="b", cpu="0"),
        *low(2, name="c", minimum=2, cpu="2", node="n2"),
    ]
    here = world(*objects, budget(minAvailable=2), *waiting(1, "2"), configuration(UNLISTED), nodes=("n1", "n2"))
    here.cycle()
    assert here.going() == ["c-0", "c-1"]


def cooling(objects, since, *, time="60s"):
    for kind, obj in objects:
        if kind is resources.PODS and "nodeName" in obj["spec"]:
            obj["metadata"]["annotations"]["volcano.sh/cooldown-time"] = time
            obj["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(since)}
            ]
    return objects


@pytest.mark.shows("scheduler 3.11 cdp/cooldown-time")
@pytest.mark.parametrize(
    ("objects", "victims"),
    [
        pytest.param([*cooling(low(4), START), *waiting()], [], id="just started"),
        pytest.param([*cooling(low(4), START - 61_000), *waiting()], ["low-3"], id="its time is over"),
        pytest.param([*cooling(low(4), START, time="soon"), *waiting()], ["low-3"], id="no duration"),
        pytest.param([*low(2, name="old"), *cooling(low(2), START), *waiting()], ["old-1"], id="another one goes"),
        pytest.param(
            [*cooling(low(4), START), *waiting(), configuration(UNLISTED)],
            ["low-3"],
            id="cdp is not listed",
        ),
    ],
)  # fmt: skip
def test_who_has_just_started_stays(objects, victims):
    here = world(*objects)
    here.cycle()
    assert here.going() == victims


@pytest.mark.shows("scheduler 3.11 cdp/cooldown-time")
def test_who_waits_for_pods_to_cool_down_is_told_and_looked_at_in_time():
    here = world(*cooling(low(4), START), *waiting())
    decisions = here.cycle()
    assert people(here.condition()["message"]).endswith(
        "Protected from being evicted for it: 4 pods by the time to cool down that they ask for."
    )
    assert decisions.wake <= START + 60_000
    here.cycle(seconds=61)
    assert here.going() == ["low-3"]


@st.composite
def protected_worlds(draw):
    """Gangs of low priority with labels and readiness, budgets about them, and one that waits."""
    objects = []
    for number in range(draw(st.integers(1, 3))):
        name, count = f"r{number}", draw(st.integers(1, 3))
        some = low(count, name=name, minimum=draw(st.integers(0, count)), node=draw(st.sampled_from(["n1", "n2"])))
        for _, obj in some[1:]:
            obj["metadata"]["labels"] = {"app": draw(st.sampled_from(["web", "db"])), "of": name}
            obj["status"]["conditions"] = [READY] if draw(st.booleans()) else []
        objects += some
    budgets = []
    for number in range(draw(st.integers(0, 3))):
        field, value = (
            draw(st.sampled_from(["minAvailable", "maxUnavailable"])),
            draw(st.sampled_from([0, 1, 2, 3, "50%", "34%"])),
        )
        selector = draw(st.sampled_from([{"app": "web"}, {"app": "db"}, {"of": "r0"}]))
        always = draw(st.sampled_from([{}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}]))
        budgets.append(budget(f"b{number}", selector, **{field: value}, **always))
    return objects, budgets, waiting(draw(st.integers(1, 3)), draw(st.sampled_from(["1", "2"])))


def fullest(objects):
    """Return how many CPUs a node needs for those who run on it: no more, so that others have to go."""
    return str(
        max(Counter(obj["spec"].get("nodeName", "") for kind, obj in objects if kind is resources.PODS).values())
    )


def permits(pods, budgets, victims):
    """Ask the rule of `pods/eviction` about one victim after the other, for each budget alone, as if each was gone at once."""
    pods = copy.deepcopy(pods)
    by_name = {each["metadata"]["name"]: each for each in pods}
    # Who is not ready is asked first: while others are going there may no longer be enough of them.
    for name in sorted(victims, key=lambda each: disruption.is_ready(by_name[each])):
        for each in budgets:
            try:
                disruption.check(by_name[name], [each], pods)
            except ApiError:
                return False
        by_name[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return True


@pytest.mark.shows("scheduler 3.11 pdb/budgets")
@examples(200)
@given(protected_worlds())
def test_evictions_are_those_that_the_eviction_api_would_allow(scene):
    objects, budgets, wanted = scene
    here = world(*objects, *budgets, *wanted, cpu=fullest(objects), nodes=("n1", "n2"))
    pods = [obj for key, obj in here.objects.items() if key[0] == "pods" and obj["spec"].get("nodeName")]
    before = copy.deepcopy(pods)
    here.cycle()
    assert permits(before, [obj for _, obj in budgets], here.going())


@examples(100)
@given(protected_worlds())
def test_budgets_that_allow_everything_change_nothing(scene):
    objects, _, wanted = scene
    one, other = (
        world(*copy.deepcopy([*objects, *wanted]), cpu=fullest(objects), nodes=("n1", "n2")) for _ in range(2)
    )
    other.put(budget("loose", {"app": "none"}, minAvailable=9))
    one.cycle()
    other.cycle()
    assert one.going() == other.going()


def test_budgets_of_a_queue_that_has_to_give_are_heeded():
    giver, taker = queue("giver", deserved={"cpu": "0"}), queue("taker", deserved={"cpu": "4"})
    here = world(giver, taker, *labelled(low(4, queue="giver")), budget(minAvailable=3), *waiting(2, queue="taker"))
    here.cycle()
    assert here.going() == []
    here.put(budget(minAvailable=2), group("g", 2, queue="taker", priorityClassName="high"))
    here.cycle()
    assert len(here.going()) == 2
