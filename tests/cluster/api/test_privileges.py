"""What takes an administrator of everything, such as paths and the network of machines, and what limit ranges and quotas refuse."""

import pytest

from cluster import api
from cluster.access import SYSTEM
from cluster.rules.node import node_walls
from cluster.rules.node.leases import LEASE_NAMESPACE
from cluster.store import Create, store
from jobs.crons import plan
from jobs.pages.editor import choices
from kube import resources
from kube.errors import Forbidden, NotFound
from kube.kinds.batch import CronJob
from kube.resources import JOB_FLOWS, JOBS, POD_GROUPS, PODS
from tests import builders
from tests.blocks import blocks
from tests.cluster.story import Story
from tests.tables import cases

from .conftest import config_map

pytestmark = pytest.mark.django_db
CRITICAL = "system-node-critical"
# What a pod may ask for, and the refusal of it.
PRIVILEGES = {
    "path": ({"volumes": [{"name": "h", "hostPath": {"path": "/srv/data"}}]},
        r'hostPath "/srv/data" is not allowed\..*(ask an administrator to add the directory to|below those of) VOLCANO_UI_HOST_PATHS'),
    "network": ({"hostNetwork": True}, "hostNetwork is not allowed: .* kubectl port-forward"),
    "class": ({"priorityClassName": CRITICAL}, f'priorityClassName "{CRITICAL}" is not allowed.*use another class, or ask'),
}  # fmt: skip
PATH = PRIVILEGES["path"][0]
KINDS = (PODS, POD_GROUPS, JOBS, resources.JOB_TEMPLATES, resources.CRON_JOBS, JOB_FLOWS, resources.BATCH_JOBS)
SHARED = (resources.JOB_TEMPLATES, JOB_FLOWS)  # of several people: nobody's rights are those of their pods


@pytest.fixture(autouse=True)
def _cluster(cluster):
    for name, value in ((CRITICAL, 2_000_001_000), ("high", 1000)):
        store.write(Create(resources.PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}))


def made(kind, **pod):
    """An object of a kind, with fields of the spec of the pods that it is, has or makes."""
    tasks = [builders.task("t", pod=pod)]
    group = {key: value for key, value in pod.items() if key == "priorityClassName"}
    specs = {
        PODS: {"containers": [builders.container()], **pod},
        POD_GROUPS: {"minMember": 1, **group},
        JOBS: {"queue": "default", "minAvailable": 1, "tasks": tasks},
        resources.JOB_TEMPLATES: {"tasks": tasks},
        resources.CRON_JOBS: {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": tasks}}},
        JOB_FLOWS: {"flows": [{"name": "a", "patch": {"jobSpec": {"tasks": tasks}}}]},
        resources.BATCH_JOBS: {"template": builders.template(**pod)},
    }
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": specs[kind]}


@pytest.mark.parametrize("role", ["submitter", "operator", "administrator", "everywhere"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
@pytest.mark.parametrize("privilege", PRIVILEGES)
def test_a_privilege_takes_an_administrator_of_everything(person, kind, role, privilege):
    actor = person("sam", **{role: "administrator"} if role == "everywhere" else {"default": role})
    pod, refusal = PRIVILEGES[privilege]
    asks = privilege == "class" or kind is not POD_GROUPS  # which are no pods
    if asks and (role != "everywhere" or (kind in SHARED and privilege != "class")):
        with pytest.raises(Forbidden, match=f'"x" is forbidden: {refusal}'):
            api.create(actor, kind, made(kind, **pod))
        with pytest.raises(NotFound):
            store.get(kind, "default", "x")
        api.create(actor, kind, made(kind, priorityClassName="high"))
    else:
        api.create(actor, kind, made(kind, **pod))


def test_what_the_setting_names_is_everybody_s(alice, settings):
    settings.HOST_PATHS = ["/srv/data/"]
    for path in ("/srv/database", "/srv"):
        with pytest.raises(Forbidden, match=r"only below /srv/data"):
            api.create(alice, PODS, made(PODS, volumes=[{"name": "h", "hostPath": {"path": path}}]))
    for number, path in enumerate(("/srv/data", "/srv/data/deep/er", "/srv//data/./x")):
        for kind in (PODS, JOB_FLOWS):
            obj = made(kind, volumes=[{"name": "h", "hostPath": {"path": path}}])
            api.create(alice, kind, {**obj, "metadata": {"name": f"x{number}", "namespace": "default"}})


@blocks("privileges", folder="cluster")
def test_nobody_decides_what_runs_with_a_privilege_that_he_does_not_have(story, block, golden):
    golden(block, story.tell)


def test_whoever_runs_a_cron_job_by_hand_makes_the_job_and_the_form_offers_a_class_to_who_may(admin, alice, olga):
    """Its owner is the administrator's, but its pods run what he who asked for it may run."""
    api.create(admin, resources.CRON_JOBS, made(resources.CRON_JOBS, **PATH))
    by_hand = plan.by_hand(store.get(resources.CRON_JOBS, "default", "x").read(CronJob))
    with pytest.raises(Forbidden, match='hostPath "/srv/data" is not allowed'):
        api.create(olga, JOBS, by_hand)
    api.create(admin, JOBS, by_hand)
    offered = [[choice.value for choice in choices._priorities(actor)] for actor in (alice, admin)]
    assert offered == [["high"], [CRITICAL, "high"]]


def machines(*walls):
    for number, words in enumerate(walls):
        lease = builders.of(resources.LEASES, f"n{number}", namespace=LEASE_NAMESPACE)
        store.write(Create(resources.NODES, builders.node(f"n{number}", annotations={node_walls.ANNOTATION: words})))
        store.write(Create(resources.LEASES, lease))


NO_WALL, HOLDS = "none: no Landlock", "holds: Landlock"
NO_NETWORK = f"{HOLDS}; {node_walls.NO_PODS}there is no network"


@pytest.mark.parametrize("kind", [PODS, JOBS], ids=lambda kind: kind.kind)
@cases("walls, role, allowed, why", {
    "no wall": ([NO_WALL], "submitter", False, "Only pods of administrators of all namespaces run there"),
    "no wall, which is allowed": ([NO_WALL], "submitter", True, ""),
    "no wall for an administrator": ([NO_WALL], None, False, ""),
    "a wall elsewhere": ([NO_WALL, HOLDS], "submitter", False, ""),
    "a wall": ([HOLDS], "submitter", False, ""),
    "no network that pods may have": ([NO_NETWORK], "submitter", True, "no pods run: there is no network"),
})  # fmt: skip
def test_who_makes_what_no_machine_has_a_wall_for_is_told(admin, alice, settings, kind, walls, role, allowed, why):
    settings.ALLOW_UNWALLED = allowed
    machines(*walls)
    warnings = []
    api.create(alice if role else admin, kind, made(kind), warn=warnings.append)
    found = [text for text in warnings if "for want of a wall" in text]
    assert [why in text for text in found] == ([True] if why else [])


@cases("wall, allowed", {"no wall": (NO_WALL, False), "a wall": ("holds with Landlock", True)})
def test_nobody_decides_what_runs_without_a_wall(story, settings, wall, allowed):
    machines(wall)
    story.tell("root create cronjob x")
    outcome = story.tell("olga patch cronjob x spec.jobTemplate.spec.plugins={ssh: []}")[0]
    assert outcome.startswith("done") or "the node n0 has no wall round pods. Only pods of administrators" in outcome
    assert outcome.startswith("done") is allowed
    settings.ALLOW_UNWALLED = True
    assert allowed or story.tell("olga patch cronjob x spec.jobTemplate.spec.plugins={ssh: []}")[0].startswith("done")


@blocks("bounds", folder="cluster")
def test_what_there_is_room_for(block, golden):
    golden(block, Story().tell)


def test_creation_without_a_quota_asks_once_for_them(django_assert_max_num_queries):
    store.write(Create(resources.CONFIGMAPS, config_map("warm")))
    with django_assert_max_num_queries(30) as queries:
        api.create_many(SYSTEM, resources.CONFIGMAPS, [config_map(f"m{n}") for n in range(50)])
    assert len([q for q in queries.captured_queries if "'resourcequotas'" in q["sql"]]) == 1
