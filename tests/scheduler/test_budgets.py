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
from tests.campaign import examples
from tests.tables import cases

from .world import START, World, configuration, group, situation

READY = {"type": "Ready", "status": "True"}
WEB = {"app": "web"}
PLUGINS = "actions: enqueue, allocate, preempt\ntiers:\n- plugins:\n"
UNLISTED = configuration(PLUGINS + "  - name: gang\n")
LISTED = configuration(PLUGINS + "  - name: pdb\n  - name: cdp\n")


def budget(name="web", selector=WEB, **spec):
    metadata = {"name": name, "namespace": "ns"}
    return resources.DISRUPTION_BUDGETS, {"metadata": metadata, "spec": {"selector": {"matchLabels": selector}, **spec}}


def web(text, *names, ready=True):
    """The objects of a situation, in which pods, or those with these names, have a label and are ready."""
    for kind, obj in situation(text):
        if kind is resources.PODS and (not names or obj["metadata"]["name"] in names):
            obj["metadata"]["labels"] = WEB
            obj["status"]["conditions"] = [READY] if ready else []
        yield kind, obj


def noted(text, field, value):
    """The objects of a situation whose groups state a budget themselves."""
    for kind, obj in situation(text):
        if kind is resources.POD_GROUPS:
            obj["metadata"]["annotations"] = {f"volcano.sh/jdb-{field}": value}
        yield kind, obj


def cooling(text, since=START, time="60s"):
    """The objects of a situation whose pods have started then and ask for a time to cool down."""
    for kind, obj in situation(text):
        if kind is resources.PODS:
            obj["metadata"]["annotations"]["volcano.sh/cooldown-time"] = time
            told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(since)}
            obj["status"]["conditions"] = [told]
        yield kind, obj


def crowd(*objects, cpu="4", nodes="n1"):
    """Nodes of a queue from which nobody else takes anything."""
    return World("queue default reclaimable=false", f"node {nodes} {cpu} pods:99", *objects)


FOUR, GANG = "group low 1/4x1 low @n1", "group low 4x1 low @n1"
ONE, TWO, THREE = (f"group g {count}x1 high" for count in (1, 2, 3))


@pytest.mark.shows("scheduler 3.11 pdb/budgets", "scheduler 3.11 pdb/no labels")
@cases("objects, victims", {
    "none may go": ([*web(FOUR), budget(minAvailable=4), ONE], ""),
    "two may go": ([*web(FOUR), budget(minAvailable=2), TWO], "low-2 low-3"),
    "two of three are too few": ([*web(FOUR), budget(minAvailable=2), THREE], ""),
    "one may be away": ([*web(FOUR), budget(maxUnavailable=1), TWO], ""),
    "half": ([*web(FOUR), budget(maxUnavailable="50%"), TWO], "low-2 low-3"),
    "one stays by default": ([*web(FOUR), budget(), THREE], "low-1 low-2 low-3"),
    "of two budgets each must allow it":
        ([*web(FOUR), budget("a", minAvailable=1), budget("b", minAvailable=3), TWO], ""),
    "others": ([*web(FOUR), budget(selector={"app": "db"}, minAvailable=4), ONE], "low-3"),
    "one that no budget is about goes instead": ([*web(FOUR, "low-3"), budget(minAvailable=1), ONE], "low-2"),
    "those without a budget go first": ([*web(FOUR, "low-2", "low-3"), budget(minAvailable=1), ONE], "low-1"),
    "a gang stays whole of which not all may go": ([*web(GANG), budget(minAvailable=1), ONE], ""),
    "a gang of which all may go goes": ([*web(GANG), budget(minAvailable=0), ONE], "low-0 low-1 low-2 low-3"),
    "who is not ready stays while too few are": ([*web(FOUR, ready=False), budget(minAvailable=1), ONE], ""),
    "who is not ready may always go where the budget says so": ([*web(FOUR, ready=False),
        budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"), ONE], "low-3"),
    "the group says how many must stay": ([*noted(FOUR, "min-available", "3"), TWO], ""),
    "the group says it as a share": ([*noted(FOUR, "min-available", "50%"), TWO], "low-2 low-3"),
    "the group says how many may be away": ([*noted(FOUR, "max-unavailable", "1"), ONE], "low-3"),
    "what a group says that cannot be read": ([*noted(FOUR, "min-available", "some"), ONE], "low-3"),
    "pdb is listed": ([*web(FOUR), budget(minAvailable=4), LISTED, ONE], ""),
    "pdb is not listed: while nobody else can be evicted":
        ([*web(FOUR), budget(minAvailable=4), UNLISTED, ONE], "low-3"),
    "just started | scheduler 3.11 cdp/cooldown-time": ([*cooling(FOUR), ONE], ""),
    "its time to cool down is over": ([*cooling(FOUR, START - 61_000), ONE], "low-3"),
    "no duration": ([*cooling(FOUR, time="soon"), ONE], "low-3"),
    "another one goes than who has just started":
        (["group old 1/2x1 low @n1", *cooling("group low 1/2x1 low @n1"), ONE], "old-1"),
    "cdp is not listed": ([*cooling(FOUR), UNLISTED, ONE], "low-3"),
})  # fmt: skip
def test_who_goes(objects, victims):
    here = crowd(*objects)
    here.cycle()
    assert here.going() == victims.split()


def test_a_budget_protects_without_pdb_as_long_as_there_are_others():
    """As kube-scheduler: whom no budget is about, or whom it allows to go, goes first."""
    others = "group b 1/1x0 low @n1; group c 2x2 low @n2; group g 1x2 high"
    here = crowd(*web("group a 1/2x2 low @n1"), others, budget(minAvailable=2), UNLISTED, nodes="n1..2")
    here.cycle()
    assert here.going() == ["c-0", "c-1"]


def test_two_gangs_share_what_a_budget_allows():
    here = crowd(*web(FOUR), budget(minAvailable=3), "group a 1x1 high; group b 1x1 high")
    here.cycle()
    assert here.going() == ["low-3"]
    here.gone()
    here.cycle()
    assert here.placed() == "a n1"
    assert here.going() == [], "three are left, and three must stay"


def test_group_is_told_who_is_protected_and_by_what():
    own = noted("group own 0/1x1 low @n1", "min-available", "1")
    here = crowd(*web("group low 1/3x1 low @n1"), *own, budget(minAvailable=2), TWO)
    here.cycle()
    assert here.told() == (
        "0 of 2 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1). Protected from being evicted "
        "for it: 2 pods by disruption budget ns/web, 1 pod by the budget of pod group ns/own."
    )


@cases("running, pods", {
    "one on a node that the gang may not use": ("group low 1/2x1 low @n1; group far 1x1 low @n2", 2),
    "all on such nodes": ("group top 2x1 high @n1; group low 1/2x1 low @n2", 0),
    "a gang that goes whole": ("group low 2x1 low @n1,n2; pod top @n1", 2),
    "the queue is full":
        ("group low 1x1 low @n1; group far 1/2x1 low @n2; queue default 3 reclaimable=false", 3),
})  # fmt: skip
def test_only_those_are_told_of_whose_going_could_help(running, pods):
    """n1 has two CPU, and nobody tolerates the taint of n2."""
    here = crowd("node n2 2 !t", *web(running), budget(minAvailable="100%"), ONE, cpu="2")
    here.cycle()
    assert here.going() == []
    told = f"Protected from being evicted for it: {pods} pods by disruption budget ns/web."
    assert (told in here.told(), "Protected" in here.told()) == (pods > 0, pods > 0)


def test_victims_are_found_when_the_budget_allows_it():
    here = crowd(*web(FOUR), budget(minAvailable=4), ONE)
    here.cycle()
    here.put(budget(minAvailable=3))
    here.cycle()
    assert here.going() == ["low-3"]
    here.remove(resources.DISRUPTION_BUDGETS, "web")
    assert here.snapshot.budgets == {}


@pytest.mark.shows("scheduler 3.11 cdp/cooldown-time")
def test_who_waits_for_pods_to_cool_down_is_told_and_looked_at_in_time():
    here = crowd(*cooling(FOUR), ONE)
    decisions = here.cycle()
    assert here.told().endswith(
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
        minimum, place = draw(st.integers(0, count)), draw(st.sampled_from(["n1", "n2"]))
        gang = [*situation(f"group {name} {minimum}/{count}x1 low @{place}")]
        for _, obj in gang[-count:]:
            obj["metadata"]["labels"] = {"app": draw(st.sampled_from(["web", "db"])), "of": name}
            obj["status"]["conditions"] = [READY] if draw(st.booleans()) else []
        objects += gang
    budgets = []
    for number in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from(["minAvailable", "maxUnavailable"]))
        value = draw(st.sampled_from([0, 1, 2, 3, "50%", "34%"]))
        selector = draw(st.sampled_from([{"app": "web"}, {"app": "db"}, {"of": "r0"}]))
        always = draw(st.sampled_from([{}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}]))
        budgets.append(budget(f"b{number}", selector, **{field: value}, **always))
    return objects, budgets, f"group g {draw(st.integers(1, 3))}x{draw(st.integers(1, 2))} high"


def full(objects, *others):
    """Nodes with as many CPUs as those need who run on one of them: no more, so that others have to go."""
    use = Counter(obj["spec"]["nodeName"] for kind, obj in objects if kind is resources.PODS)
    return crowd(*copy.deepcopy(objects), *others, cpu=max(use.values()), nodes="n1..2")


def permits(pods, budgets, victims):
    """Ask the rule of `pods/eviction` about one victim after the other, for each budget, as if each was gone."""
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
    here = full(objects, *budgets, wanted)
    pods = [obj for key, obj in here.objects.items() if key[0] == "pods" and obj["spec"].get("nodeName")]
    before = copy.deepcopy(pods)
    here.cycle()
    assert permits(before, [obj for _, obj in budgets], here.going())


@examples(100)
@given(protected_worlds())
def test_budgets_that_allow_everything_change_nothing(scene):
    objects, _, wanted = scene
    one, other = (full(objects, wanted) for _ in range(2))
    other.put(budget("loose", {"app": "none"}, minAvailable=9))
    one.cycle()
    other.cycle()
    assert one.going() == other.going()


def test_budgets_of_a_queue_that_has_to_give_are_heeded():
    giver = web("group low 1/4x1 low queue=giver @n1")
    here = crowd("queue giver deserved=0; queue taker deserved=4", *giver, budget(minAvailable=3), f"{TWO} queue=taker")
    here.cycle()
    assert here.going() == []
    here.put(budget(minAvailable=2), group("g", 2, queue="taker", priorityClassName="high"))
    here.cycle()
    assert len(here.going()) == 2
