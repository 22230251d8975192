"""What the scheduler's features do on a running system: web, workers, scheduler and simulator as processes, asked through the API.

Each scenario has its outcome; whatever happens, the whole log is judged (`proof.invariants`) and whoever waits has a reason.
"""

import datetime
import itertools
import re

import pytest

from cluster.remote.http import paths
from kube.resources import HYPER_NODES, PRIORITY_CLASSES, QUEUES, RESOURCE_QUOTAS
from proof import invariants
from proof.harness.waiting import until
from proof.systems.system import running
from proof.systems.work import Page, Person, shell
from tests.scheduler.notation import configured
from tests.system import drill as drills
from tests.system.drill import Drill, pods
from tests.tables import cases

pytestmark = pytest.mark.system
NODES = [f"sim-{number:04}" for number in range(1, 13)]  # of 32 CPU each
RACKS = {f"rack-{n + 1}": NODES[2 * n : 2 * n + 2] for n in range(6)}
ROWS = {f"row-{n + 1}": [f"rack-{2 * n + 1}", f"rack-{2 * n + 2}"] for n in range(3)}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ACTIONS = "enqueue, allocate, backfill, reclaim, preempt"


def conf(plugins, actions=ACTIONS):
    """Return a configuration, in which OPEN and SHUT are times of the day that have begun or come, and last for two hours."""
    return configured(f"{actions}: gang, {plugins}".replace("OPEN", window(-1)).replace("SHUT", window(3)))


def window(hours):
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    return f'"{begins:%H:%M}-{begins + datetime.timedelta(hours=2):%H:%M}"'


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

# A line a job, `name 4x16` of 4 pods of 16 CPU (`ps:2x2 worker:4x2` of two tasks, `3x4x16 least=2` of 3 partitions of 4
# pods, each in one rack) with its queue, the highest tier that it may span, `?x=y` on nodes with a label, annotations of
# its pods with `~` and of itself with `+`. Behind the arrow: how many are on each of which nodes; or why it waits, in words.
SCENARIOS = {
    "HyperNodes: a gang is in one rack, another in one row, as far as they allow": """
        rack 4x16 tier=1 → 2 on 1..2
        row 4x20 tier=2 → 1 on 5..8
        far 3x32 tier=1 → NetworkTopology: This can never start + one HyperNode of tier 1
    """,
    "sub-groups: partitions start whole, each in a rack, as many as there is room for": """
        label 7,9 half=a
        filler 2x32 ?half=a → 1 on 7,9
        parts 3x4x16 least=2 → 2 on 1..6
        more 2x4x16 least=2 → SubGroups: 1 of 2 sub-groups fit + room for 4 pods at once
    """,
    "nodegroup: queues use the nodes of their groups": """
        conf nodegroup, nodeorder
        label 1,2 volcano.sh/nodegroup-name=red
        label 3 volcano.sh/nodegroup-name=blue
        queue reds uses=red
        queue greens uses=green
        queue others
        red 4x16 queue=reds → 2 on 1..2
        more 1x16 queue=reds → NotEnoughResources: Other nodes are not for the queue + of node group blue
        green 1x1 queue=greens → NodeGroup: No node is for the queue + of node group red
        other 9x30 queue=others → 1 on 4..12
    """,
    "tdm: zones take who may be revoked, while they are open": """
        conf {name: tdm, arguments: {tdm.revocable-zone.day: OPEN, tdm.revocable-zone.night: SHUT, tdm.evict.period: 1s}}
        label 1 volcano.sh/revocable-zone=day
        label 2 volcano.sh/revocable-zone=night
        lent 2x16 ~revocable-zone=* → 2 on 1
        early 1x16 ~revocable-zone=* ?volcano.sh/revocable-zone=night → RevocableZone: night, which is closed now
        own 1x16 ?volcano.sh/revocable-zone=day → RevocableZone: zone day, which is for pods that may be revoked
    """,
    "task-topology: each server has its workers beside it": """
        conf {name: task-topology, arguments: {task-topology.weight: 10}}, nodeorder
        train ps:2x2 worker:4x2 +task-topology-affinity=ps,worker +task-topology-anti-affinity=ps → 3 on 1..2
    """,
    "nodeorder: where pods go follows the weights": """
        conf {name: nodeorder, arguments: {leastrequested.weight: 1, balancedresource.weight: 0}}
        spread 12x8 → 1 on 1..12
    """,
    "quota: who has no room in his namespace does not enter, and is told how much is left": """
        quota requests.cpu=8
        fits 5x1 → 5 on 1
        waits 4x1 → QuotaExceeded: quota bound + needs 4 CPU + 3 CPU of 8 CPU left
        never 9x1 → QuotaExceeded: This can never start + allows 8 CPU
    """,
    "capability: a queue is at its limit, and another has too little ever": """
        queue narrow cpu=4
        first 3x1 queue=narrow → 3 on 1
        second 2x1 queue=narrow → QueueLimit: room in queue narrow + 1 CPU of 4 CPU can still be given out
        third 5x1 queue=narrow → QueueTooSmall: This can never start in queue narrow
    """,
}


def carry_out(drill, line):
    """Do what a line says, and see what comes of its job."""
    step, _, seen = line.partition(" → ")
    verb, name, *words = step.split()
    fields = dict(each.split("=", 1) for each in (name, *words) if "=" in each)
    if verb == "conf":
        drill.configure(conf(step.removeprefix("conf ")))
    elif verb == "label":
        drill.label(fields, *nodes_of(name))
    elif verb == "queue":
        uses = {"affinity": {"nodeGroupAffinity": {REQUIRED: [fields["uses"]]}}} if "uses" in fields else {}
        drill.create(QUEUES, name, **uses, **({"capability": {"cpu": fields["cpu"]}} if "cpu" in fields else {}))
    elif verb == "quota":
        drill.create(RESOURCE_QUOTAS, "bound", hard=fields)
    else:
        submit(drill, verb, [each for each in (name, *words) if "=" not in each], fields)
        how, _, rest = seen.partition(": ")
        if rest:
            drill.waits(verb, how, *rest.split(" + "))
        else:
            count, _, nodes = seen.partition(" on ")
            found = drill.runs(verb)
            assert found.keys() <= {*nodes_of(nodes)}, found
            assert set(found.values()) == {int(count)}, found


def submit(drill, name, sizes, fields):
    def marked(sign, prefix=""):
        return {f"{prefix}{key[1:]}": value for key, value in fields.items() if key[0] == sign}

    spec, tasks = ({"queue": fields["queue"]} if "queue" in fields else {}), []
    spec |= hard(int(fields["tier"])) if "tier" in fields else {}
    for each in sizes:
        task, _, size = each.rpartition(":")
        *parts, count, cpu = size.split("x")
        total, count = int(*parts or (1,)), int(count)
        notes = marked("~", "volcano.sh/")
        tasks.append(pods(total * count, cpu, name=task or "main", on=marked("?"), notes=notes))
        if parts:
            least = int(fields["least"])
            policy = {"totalPartitions": total, "partitionSize": count, "minPartitions": least, **hard(1)}
            tasks[-1]["partitionPolicy"], spec["minimum"] = policy, least * count
    drill.submit(name, *tasks, notes=marked("+", "volcano.sh/"), **spec)


def hard(tier):
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}


def nodes_of(text):
    """Return the nodes of `1,3` or `1..3`."""
    first, _, last = text.partition("..")
    numbers = range(int(first), int(last) + 1) if last else map(int, text.split(","))
    return [NODES[number - 1] for number in numbers]


def network(drill):
    """Make racks, rows of them and a hall, unless they are there; wait until their nodes are counted."""
    path = paths.collection(HYPER_NODES)
    if not drill.api.get(path).json()["items"]:
        levels = (("rack", "Node", RACKS), ("row", "HyperNode", ROWS), ("hall", "HyperNode", {"hall": ROWS}))
        for tier, (tier_name, kind, domains) in enumerate(levels, 1):
            for name, members in domains.items():
                listed = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
                drill.create(HYPER_NODES, name, tier=tier, tierName=tier_name, members=listed)

    def counted():
        found = drill.api.get(path).json()["items"]
        counts = {each["metadata"]["name"]: (each.get("status") or {}).get("nodeCount") for each in found}
        return counts["hall"] == len(NODES) and all(counts[name] == 2 for name in RACKS)

    until(counted, every_s=drills.LOOK_S, what="HyperNodes that know their nodes")


@cases("scenario", SCENARIOS)
def test_scenario(drill, scenario):
    network(drill)
    for line in scenario.strip().splitlines():
        carry_out(drill, line.strip())


# --- What follows when something changes ------------------------------------------------------------------------


def text_of(person, address):
    """Return the words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", person.get(address).text).split())


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


def test_pods_leave_a_zone_that_closes_and_run_elsewhere(drill):
    zone = "{name: tdm, arguments: {tdm.revocable-zone.day: %s, tdm.evict.period: 1s}}"
    drill.label({"volcano.sh/revocable-zone": "day"}, NODES[0])
    drill.configure(conf(zone % "OPEN"))
    drill.submit("lent", pods(3, "8", notes={"volcano.sh/revocable-zone": "*"}), minimum=1)
    assert drill.runs("lent") == {NODES[0]: 3}
    drill.configure(conf(zone % "SHUT"))
    drill.comes_to("lent", lambda places: places.total() == 3 and not places.keys() & {NODES[0], ""})


def test_pods_move_from_a_node_above_its_target_and_the_page_says_why(drill, person):
    levels = "{thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}"
    moves = f"{{interval: 1s, strategies: [{{name: lowNodeUtilization, params: {levels}}}]}}"
    drill.configure(conf(f"nodeorder, {{name: rescheduling, arguments: {moves}}}", f"{ACTIONS}, shuffle"))
    drill.label({"pool": "wide"}, NODES[0])
    drill.submit("crowd", pods(8, "4", on={"pool": "wide"}), minimum=1)
    assert drill.runs("crowd") == {NODES[0]: 8}
    drill.label({"pool": "wide"}, *NODES[1:3])
    drill.comes_to("crowd", lambda places: places == {NODES[0]: 4, NODES[1]: 2, NODES[2]: 2})
    decided = text_of(person, f"/jobs/{drill.namespace}/crowd/?tab=decisions")
    assert f"because of shuffle: more of node {NODES[0]} is asked for than its target" in decided


def test_a_more_urgent_job_takes_what_a_budget_leaves(drill):
    drill.create(PRIORITY_CLASSES, "high", {"value": 1000})
    drill.create(QUEUES, "small", capability={"cpu": "128"})
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
    drill.create(QUEUES, "early", weight=1)
    drill.create(QUEUES, "late", weight=1)
    drill.submit("wide", pods(12, "32"), minimum=1, queue="early")
    drill.runs("wide")
    drill.submit("fair", pods(12, "32"), minimum=4, queue="late")
    drill.comes_to("fair", lambda places: places.total() - places[""] == 4)
    drill.comes_to("wide", lambda places: places[""] == 4 and places.total() == 12)


def test_room_is_kept_for_a_gang_and_used_by_who_ends_in_time(drill):
    drill.configure(configured(f"{ACTIONS}: {{name: gang, arguments: {{reservation-wait: 1s}}}}"))
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
    drill.create(PRIORITY_CLASSES, "urgent", {"value": 10})
    drill.create(QUEUES, "line", capability={"cpu": "1"})
    drill.submit("runs", pods(1), queue="line", notes={"volcano.sh/preemptable": "false"})
    drill.runs("runs")
    for name, urgency in {"second": "", "third": "", "first": "urgent"}.items():
        drill.submit(name, pods(1), queue="line", priorityClassName=urgency)
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
    mistake = {"data": {drills.KEY: "actions: alocate"}}
    wrong = drill.api.patch(drills.CONFIGURATION, json=mistake, headers=drills.MERGE)
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


def test_a_busy_node_takes_no_pods(drill):
    """The node of this machine, whose load is measured: it always uses more than a percent of its memory."""
    drill.configure(conf("{name: usage, arguments: {thresholds: {mem: 1}}}"))
    names = (f"real-{number}" for number in itertools.count())

    def is_busy():
        """The load is known some seconds after the start, and until then pods run."""
        drill.submit(name := next(names), shell("exit 0"))

        def settled():
            status = drill.job(name).get("status") or {}
            is_over = (status.get("state") or {}).get("phase") == "Completed"
            return status if is_over or status.get("waitingReason") else None

        return name if until(settled, every_s=drills.LOOK_S).get("waitingReason") else None

    drill.waits(until(is_busy, every_s=1), "NodesBusy", "All nodes are too busy")
