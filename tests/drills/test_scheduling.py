"""What the scheduler's features do on a running system: web, workers, scheduler and simulator as processes, asked through the API.

Each scenario has its outcome; whatever happens, the whole log is judged (`proof.invariants`) and whoever waits has a reason.
"""

from __future__ import annotations

import datetime
import itertools
import re
from typing import NamedTuple

import pytest

from proof import invariants
from proof.harness.waiting import until
from proof.systems.system import running
from proof.systems.work import Page, Person, shell
from tests.system import drill as drills
from tests.system.drill import Drill, pods

pytestmark = pytest.mark.system
NODES = [f"sim-{number:04}" for number in range(1, 13)]  # of 32 CPU each
RACKS = {f"rack-{n + 1}": NODES[2 * n : 2 * n + 2] for n in range(6)}
ROWS = {f"row-{n + 1}": [f"rack-{2 * n + 1}", f"rack-{2 * n + 2}"] for n in range(3)}
GROUP, ZONE = "volcano.sh/nodegroup-name", "volcano.sh/revocable-zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ACTIONS = "actions: enqueue, allocate, backfill, reclaim, preempt"
CONF = ACTIONS + "%s\ntiers:\n- plugins:\n  - name: gang\n%s"


def conf(*plugins, action=""):
    """Return a configuration that lists plugins, each with its arguments in YAML."""
    lines = "".join(
        f"  - name: {name}\n" + (f"    arguments: {arguments}\n" if arguments else "") for name, arguments in plugins
    )
    return CONF % (action, lines)


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with running(tmp_path_factory.mktemp("drills") / "data", nodes=len(NODES)) as started:
        yield started


@pytest.fixture(scope="module")
def api(system, tmp_path_factory):
    with drills.client(system, tmp_path_factory.mktemp("api")) as opened:
        yield opened


@pytest.fixture(scope="module")
def judge():
    return invariants.Judge()


@pytest.fixture
def drill(api, system, judge):
    """A scenario, after which the log is judged."""
    with Drill(api) as one:
        yield one
    with system.store() as store:
        while changes := store.changes(judge.revision, limit=4000):
            for change in changes:
                judge.take(change)
    judge.finish()


# --- Who is placed where, and who waits for what -----------------------------------------------------------------


class Waits(NamedTuple):
    """A job that waits: the reason, and words of its sentence."""

    reason: str
    words: tuple[str, ...] = ()


class Within(NamedTuple):
    """A job that runs, all of it on these nodes; exactly so many pods on each if that is said."""

    nodes: tuple[str, ...]
    each: int | None = None


class Scenario(NamedTuple):
    """What there is, who comes (name → tasks, spec, annotations), and what becomes of whom."""

    jobs: dict
    outcome: dict
    conf: str = ""
    labels: dict = {}
    queues: dict = {}
    quota: dict = {}


def asked(*tasks, notes=None, **spec):
    return tasks, spec, notes


def hard(tier):
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}


def parted(total, size, least):
    """Return a task of partitions of which each is in one rack."""
    policy = {"totalPartitions": total, "partitionSize": size, "minPartitions": least, **hard(1)}
    return {**pods(total * size, "16", name="work"), "partitionPolicy": policy}


def window(hours):
    """Return a time of the day that begins in so many hours, or did, and lasts for two."""
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    return f"{begins:%H:%M}-{begins + datetime.timedelta(hours=2):%H:%M}"


def zones(**windows):
    listed = ", ".join(f'tdm.revocable-zone.{name}: "{when}"' for name, when in windows.items())
    return conf(("tdm", f"{{{listed}, tdm.evict.period: 1s}}"))


def uses(*groups):
    return {"affinity": {"nodeGroupAffinity": {REQUIRED: list(groups)}}}


REVOCABLE = {ZONE: "*"}
SCENARIOS = {
    "HyperNodes: a gang is in one rack, another in one row, as far as they allow": Scenario(
        jobs={
            "rack": asked(pods(4, "16"), **hard(1)),
            "row": asked(pods(4, "20"), **hard(2)),
            "far": asked(pods(3, "32"), **hard(1)),
        },
        outcome={
            "rack": Within(tuple(RACKS["rack-1"]), 2),
            "row": Within(tuple(NODES[4:8]), 1),
            "far": Waits("NetworkTopology", ("This can never start", "one HyperNode of tier 1")),
        },
    ),
    "HyperNodes: none has room for a gang while others run": Scenario(
        jobs={"filler": asked(pods(6, "32", on={"half": "a"})), "late": asked(pods(2, "32"), **hard(1))},
        labels={node: {"half": "a"} for node in NODES[::2]},
        outcome={
            "filler": Within(tuple(NODES[::2]), 1),
            "late": Waits("NetworkTopology", ("1 of 2 pods fit at best", "one HyperNode of tier 1")),
        },
    ),
    "sub-groups: partitions start whole, each in a rack, as many as there is room for": Scenario(
        labels={node: {"half": "a"} for node in (NODES[6], NODES[8])},
        jobs={
            "filler": asked(pods(2, "32", on={"half": "a"})),
            "parts": asked(parted(3, 4, 2), minimum=8),
            "more": asked(parted(2, 4, 2), minimum=8),
        },
        outcome={
            "filler": Within((NODES[6], NODES[8]), 1),
            "parts": Within(tuple(NODES[:6]), 2),
            "more": Waits("SubGroups", ("1 of 2 sub-groups fit", "room for 4 pods at once")),
        },
    ),
    "nodegroup: queues use the nodes of their groups": Scenario(
        conf=conf(("nodegroup", ""), ("nodeorder", "")),
        labels={NODES[0]: {GROUP: "red"}, NODES[1]: {GROUP: "red"}, NODES[2]: {GROUP: "blue"}},
        queues={"reds": uses("red"), "greens": uses("green"), "others": {}},
        jobs={
            "red": asked(pods(4, "16"), queue="reds"),
            "more": asked(pods(1, "16"), queue="reds"),
            "green": asked(pods(1, "1"), queue="greens"),
            "other": asked(pods(9, "30"), queue="others"),
        },
        outcome={
            "red": Within(tuple(NODES[:2]), 2),
            "more": Waits("NotEnoughResources", ("Other nodes are not for the queue", "of node group blue")),
            "green": Waits("NodeGroup", ("No node is for the queue", "of node group red")),
            "other": Within(tuple(NODES[3:]), 1),
        },
    ),
    "tdm: zones take who may be revoked, while they are open": Scenario(
        conf=zones(day=window(-1), night=window(3)),
        labels={NODES[0]: {ZONE: "day"}, NODES[1]: {ZONE: "night"}},
        jobs={
            "lent": asked(pods(2, "16", notes=REVOCABLE)),
            "early": asked(pods(1, "16", notes=REVOCABLE, on={ZONE: "night"})),
            "own": asked(pods(1, "16", on={ZONE: "day"})),
        },
        outcome={
            "lent": Within((NODES[0],), 2),
            "early": Waits("RevocableZone", ("in the revocable zone night, which is closed now",)),
            "own": Waits("RevocableZone", ("in the revocable zone day, which is for pods that may be revoked",)),
        },
    ),
    "task-topology: each server has its workers beside it": Scenario(
        conf=conf(("task-topology", "{task-topology.weight: 10}"), ("nodeorder", "")),
        jobs={
            "train": asked(
                pods(2, "2", name="ps"),
                pods(4, "2", name="worker"),
                notes={
                    "volcano.sh/task-topology-affinity": "ps,worker",
                    "volcano.sh/task-topology-anti-affinity": "ps",
                },
            )
        },
        outcome={"train": Within(tuple(NODES[:2]), 3)},
    ),
    "binpack and spreading: where pods go follows the weights": Scenario(
        conf=conf(("nodeorder", "{leastrequested.weight: 1, balancedresource.weight: 0}")),
        jobs={"spread": asked(pods(12, "8"))},
        outcome={"spread": Within(tuple(NODES), 1)},
    ),
    "quota: who has no room in his namespace does not enter, and is told how much is left": Scenario(
        quota={"requests.cpu": "8"},
        jobs={"fits": asked(pods(5)), "waits": asked(pods(4)), "never": asked(pods(9))},
        outcome={
            "fits": Within((NODES[0],), 5),
            "waits": Waits("QuotaExceeded", ("quota bound", "needs 4 CPU", "3 CPU of 8 CPU left")),
            "never": Waits("QuotaExceeded", ("This can never start", "allows 8 CPU")),
        },
    ),
    "capability: a queue is at its limit, and another has too little ever": Scenario(
        queues={"narrow": {"capability": {"cpu": "4"}}},
        jobs={
            "first": asked(pods(3), queue="narrow"),
            "second": asked(pods(2), queue="narrow"),
            "third": asked(pods(5), queue="narrow"),
        },
        outcome={
            "first": Within((NODES[0],), 3),
            "second": Waits("QueueLimit", ("room in queue narrow", "1 CPU of 4 CPU can still be given out")),
            "third": Waits("QueueTooSmall", ("This can never start in queue narrow",)),
        },
    ),
}


def hyper_node(drill, name, tier, members, kind="Node", tier_name=""):
    listed = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    spec = {"tier": tier, "tierName": tier_name, "members": listed}
    drill.make(f"{drills.TOPOLOGY}/hypernodes", "topology.volcano.sh/v1alpha1", "HyperNode", name, spec=spec)


def network(drill):
    """Make racks, rows of them and a hall, unless they are there; wait until their nodes are counted."""
    path = f"{drills.TOPOLOGY}/hypernodes"
    if not drill.api.get(path).json()["items"]:
        for name, nodes in RACKS.items():
            hyper_node(drill, name, 1, nodes, tier_name="rack")
        for name, racks in ROWS.items():
            hyper_node(drill, name, 2, racks, "HyperNode", "row")
        hyper_node(drill, "hall", 3, ROWS, "HyperNode", "hall")

    def counted():
        found = drill.api.get(path).json()["items"]
        counts = {each["metadata"]["name"]: (each.get("status") or {}).get("nodeCount") for each in found}
        return counts["hall"] == len(NODES) and all(counts[name] == 2 for name in RACKS)

    until(counted, every_s=drills.LOOK_S, what="HyperNodes that know their nodes")


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(drill, scenario):
    network(drill)
    if scenario.conf:
        drill.configure(scenario.conf)
    for node, labels in scenario.labels.items():
        drill.label(labels, node)
    for name, spec in scenario.queues.items():
        drill.queue(name, **spec)
    if scenario.quota:
        drill.quota(**scenario.quota)
    for name, (tasks, spec, notes) in scenario.jobs.items():
        drill.submit(name, *tasks, notes=notes, **spec)
        match scenario.outcome[name]:
            case Waits(reason, words):
                drill.waits(name, reason, *words)
            case Within(nodes, each):
                found = drill.runs(name)
                assert found.keys() <= set(nodes), found
                assert each is None or set(found.values()) == {each}, found


# --- What follows when something changes ------------------------------------------------------------------------


def text_of(person, address):
    """Return the words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", person.get(address).text).split())


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


def test_pods_leave_a_zone_that_closes_and_run_elsewhere(drill):
    drill.label({ZONE: "day"}, NODES[0])
    drill.configure(zones(day=window(-1)))
    drill.submit("lent", pods(3, "8", notes=REVOCABLE), minimum=1)
    assert drill.runs("lent") == {NODES[0]: 3}
    drill.configure(zones(day=window(3)))
    drill.comes_to("lent", lambda places: places.total() == 3 and not places.keys() & {NODES[0], ""})


def test_pods_move_from_a_node_above_its_target_and_the_page_says_why(drill, person):
    levels = "{thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}"
    moves = f"{{interval: 1s, strategies: [{{name: lowNodeUtilization, params: {levels}}}]}}"
    drill.configure(conf(("nodeorder", ""), ("rescheduling", moves), action=", shuffle"))
    drill.label({"pool": "wide"}, NODES[0])
    drill.submit("crowd", pods(8, "4", on={"pool": "wide"}), minimum=1)
    assert drill.runs("crowd") == {NODES[0]: 8}
    drill.label({"pool": "wide"}, *NODES[1:3])
    drill.comes_to("crowd", lambda places: places == {NODES[0]: 4, NODES[1]: 2, NODES[2]: 2})
    decided = text_of(person, f"/jobs/{drill.namespace}/crowd/?tab=decisions")
    assert f"because of shuffle: more of node {NODES[0]} is asked for than its target" in decided


def test_a_more_urgent_job_takes_what_a_budget_leaves(drill):
    drill.priority("high", 1000)
    drill.queue("small", capability={"cpu": "128"})
    drill.submit("victim", pods(4, "32"), minimum=1, queue="small")
    drill.runs("victim")
    drill.budget("victim", least=3)
    drill.submit("urgent", pods(1, "32"), queue="small", priorityClassName="high")
    drill.runs("urgent")
    drill.comes_to("victim", lambda places: places[""] == 1 and places.total() == 4)
    drill.submit("later", pods(1, "32"), queue="small", priorityClassName="high")
    drill.waits("later", "QueueLimit", f"3 pods by disruption budget {drill.namespace}/keep-victim", "Queue small")
    assert drill.places("victim").total() - drill.places("victim")[""] == 3


def test_a_queue_takes_back_what_it_deserves(drill):
    drill.queue("early", weight=1)
    drill.queue("late", weight=1)
    drill.submit("wide", pods(12, "32"), minimum=1, queue="early")
    drill.runs("wide")
    drill.submit("fair", pods(12, "32"), minimum=4, queue="late")
    drill.comes_to("fair", lambda places: places.total() - places[""] == 4)
    drill.comes_to("wide", lambda places: places[""] == 4 and places.total() == 12)


def test_room_is_kept_for_a_gang_and_used_by_who_ends_in_time(drill):
    drill.configure(f"{ACTIONS}\ntiers: [{{plugins: [{{name: gang, arguments: {{reservation-wait: 1s}}}}]}}]")
    two = {"pool": "two"}
    drill.label(two, *NODES[:2])
    drill.submit("long", pods(1, "32", on=two), runningEstimate="10m")
    drill.runs("long")
    drill.submit("gang", pods(2, "32", on=two))
    drill.waits("gang", "Reserved", f"on {NODES[0]} and {NODES[1]}", "it can start at")
    drill.submit("short", pods(1, "8", 2, on=two), runningEstimate="2s")
    drill.submit("endless", pods(1, "8", on=two))
    drill.waits("endless", "RoomKept", "kept for job group gang")
    drill.delete("long")
    assert drill.runs("gang") == {NODES[0]: 1, NODES[1]: 1}
    assert drill.job("short")["status"]["state"]["phase"] == "Completed"


def test_who_waits_is_in_a_line_and_every_decision_is_kept(drill, person):
    drill.priority("urgent", 10)
    drill.queue("line", capability={"cpu": "1"})
    drill.submit("runs", pods(1), queue="line", notes={"volcano.sh/preemptable": "false"})
    drill.runs("runs")
    for name, more in {"second": {}, "third": {}, "first": {"priorityClassName": "urgent"}}.items():
        drill.submit(name, pods(1), queue="line", priorityClassName=more.get("priorityClassName", ""))
        drill.waits(name, "QueueLimit")

    until(lambda: "Place in queue line : 2 of 3" in text_of(person, f"/jobs/{drill.namespace}/second/"), every_s=0.5)
    line = text_of(person, "/queues/line/")
    assert line.index("/ first") < line.index("/ second") < line.index("/ third")
    decided = text_of(person, f"/queues/-/scheduler/decisions/?namespace={drill.namespace}")
    assert f"Bound {drill.namespace} / runs" in decided
    assert f"Waits {drill.namespace} / third" in decided


def test_the_configuration_of_the_page_is_that_of_kubectl_and_a_wrong_one_changes_nothing(drill, person):
    path = "/queues/-/scheduler/"
    fields = Page(person.get(path).text).forms[path]
    answer = person.post(path, **fields | {"text": "actions: enqueue", "do": "save"})
    assert answer.status_code == 302, answer.text
    drill.is_configured = True
    drill.submit("waits", pods(1))
    drill.waits("waits", "NotAllocating")
    wrong = drill.api.patch(
        f"{drills.CORE}/namespaces/{drills.NAMESPACE}/configmaps/{drills.NAME}",
        json={"data": {drills.KEY: "actions: alocate"}},
        headers=drills.MERGE,
    )
    assert wrong.status_code == 422, wrong.text
    assert "alocate" in wrong.json()["message"]
    assert "no: no waiting pod starts" in person.get(path).text
    warnings = drill.configure("actions: enqueue, allocate\ntiers: [{plugins: [{name: binpak}]}]")
    assert any("binpak" in each and "binpack" in each for each in warnings), warnings
    drill.runs("waits")
    page = person.get(path).text
    assert "binpak" in page
    version = Page(page).forms[path]["version"]
    assert person.post(f"{path}reset/", version=version).status_code == 302
    drill.is_configured = False
    assert "Nobody has configured the scheduler" in person.get(path).text


def settled(job):
    """Return the status of a job that waits or is over, else nothing."""
    status = job.get("status") or {}
    is_over = (status.get("state") or {}).get("phase") == "Completed"
    return status if is_over or status.get("waitingReason") else None


def test_a_busy_node_takes_no_pods(drill):
    """The node of this machine, whose load is measured: it always uses more than a percent of its memory."""
    drill.configure(conf(("usage", "{thresholds: {mem: 1}}")))

    names = (f"real-{number}" for number in itertools.count())

    def is_busy():
        """The load is known some seconds after the start, and until then pods run."""
        name = next(names)
        drill.submit(name, shell("exit 0"))
        status = until(lambda: settled(drill.job(name)), every_s=drills.LOOK_S)
        return name if status.get("waitingReason") else None

    name = until(is_busy, every_s=1)
    drill.waits(name, "NodesBusy", "All nodes are too busy")
