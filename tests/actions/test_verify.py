"""What `verify_action` finds: one planted fault for each thing that must agree, and nothing where there is none."""

from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.urls import resolve

from cluster.models import Object, RoleBinding
from cluster.store import Patch, store
from dashboard import live
from dashboard.live import topics
from kube.resources import PODS, QUEUES
from tests.actions.test_pages import EVERYWHERE
from tests.actions.world import NAMESPACE
from tests.verify import Screen, verify_action

PAGE = "/queues/spare/"


@live.topic("test:deaf")
def deaf(request):
    """What a queue weighs, and no word of what makes that another text."""
    return live.Parts({"weight": f"<b id='weight'>{weight()}</b>"}, ["weight"])


@live.topic("test:leaving")
def leaving(request):
    """A part that goes without an order that says so."""
    parts = {"heavy": "<form id='heavy'></form>"} if weight() < 2 else {}
    return live.Parts(parts, watches=[live.Watch(QUEUES.id)])


@live.topic("test:telling")
def telling(request):
    """The pods of all namespaces, whoever asks."""
    rows = {pod.name: f"<i id='{pod.name}'>{pod.revision}</i>" for pod in store.find(PODS)}
    return live.Parts(rows, [*rows], [live.Watch(PODS.id)])


def weight():
    return store.get(QUEUES, "", "spare").object["spec"]["weight"]


@pytest.fixture
def small(cluster):
    """The cluster with one page open, so that it is looked through at once."""
    reader, outsider = (screen.person for screen in cluster.screens)
    cluster.screens = [Screen(reader, [PAGE], ["test:leaving"]), Screen(outsider, [], ["queues:detail?name=spare"])]
    return cluster


def change(cluster=None, **spec):
    store.write(Patch(QUEUES, "", "spare", {"spec": spec or {"weight": 2}}))


def change_pod(cluster, **what):
    store.write(Patch(PODS, NAMESPACE, "vault-long-main-0", what))


def open_deaf(cluster):
    cluster.screens[0] = Screen(cluster.screens[0].person, [], ["test:deaf"])


def open_telling(cluster):
    cluster.screens[1] = Screen(cluster.screens[1].person, [], ["test:telling"])


def show_what_nobody_patches(cluster):
    pages = cluster.screens[0].pages
    pages[PAGE] = pages[PAGE].replace("<h2>Jobs</h2>", "<h2>Jobs of weight 1</h2>")


def lose_a_row(cluster):
    change(reclaimable=False)
    Object.objects.filter(resource=QUEUES.id, name="closed").delete()


def misplace(cluster):
    change(reclaimable=False)
    Object.objects.filter(resource=QUEUES.id, name="closed").update(phase="Open")


def let_in(cluster):
    change_pod(cluster, metadata={"labels": {"a": "b"}})
    RoleBinding.objects.create(user=User.objects.get(username="olive"), namespace=NAMESPACE, role="viewer")


def nothing(cluster):
    """No fault is planted."""


FAULTS = {
    "a value of another type": (nothing, lambda c: change(extendClusters="near"), "spare: spec.extendClusters"),
    "a field that is not known": (nothing, lambda c: change(colour="red"), "spare: spec.colour is no field"),
    "a history that must not be": (nothing, lambda c: change_pod(c, spec={"nodeName": "sim-0003"}), "revision"),
    "a topic that does not hear": (open_deaf, lambda c: change(reclaimable=False, weight=3), "the topic test:deaf of rita: weight: "),
    "a part that stays": (nothing, change, "the topic test:leaving of rita: heavy"),
    "a page that is not patched": (show_what_nobody_patches, lambda c: change(reclaimable=False), f"the page {PAGE}: ….*Jobs of weight 1"),
    "a row that is lost": (nothing, lose_a_row, "a list of queues.* has .*closed"),
    "a column that is another": (nothing, misplace, "/closed is found by .'Open'"),
    "a message to an outsider": (open_telling, lambda c: change_pod(c, metadata={"labels": {"a": "b"}}), "the topic test:telling tells the outsider of .'vault"),
    "a list for an outsider": (nothing, let_in, "namespaces/vault/pods answers the outsider with 200"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(small, name):
    plant, do, pattern = FAULTS[name]
    plant(small)
    with pytest.raises(AssertionError, match=pattern), verify_action(small):
        do(small)


def test_a_query_too_many_is_found(small):
    with (
        pytest.raises(AssertionError, match=r"(?s)queries, 1 at most:\n.*cluster_change"),
        verify_action(small, queries=1),
    ):
        change(reclaimable=False)


def test_where_all_agrees_nothing_is_found(small):
    with verify_action(small, queries=20) as action:
        change(reclaimable=False)
    assert action.kinds == {QUEUES.id}
    assert [message["id"] for message in action.messages] == ["queues:detail?name=spare"]


NOT_LOOKED_AT = {
    **dict.fromkeys(
        (
            *(f"jobs:{each}" for each in ("new", "edit", "scale", "template", "template-kept", "template-new")),
            *(f"jobs:{each}" for each in ("complete", "delete", "restart", "resume", "suspend", "terminate")),
            *("queues:new", "queues:edit", "sweeps:new", "dashboard:add-machine"),
        ),
        "a form, which stays as it was when it was opened",
    ),
    **dict.fromkeys(
        (f"accounts:{each}" for each in ("login", "link", "oidc", "arrival", "connection", "password_change")),
        "nothing of the cluster",
    ),
    **dict.fromkeys(("healthz", "jobs:yaml", "jobs:log"), "no page: what programs read, or a file"),
    "jobs:operation": "its number is not known before it is made",
    **dict.fromkeys(("cluster", "clusters"), "of other clusters, of which there are none"),
}


def test_all_that_shows_something_is_looked_at(cluster):
    screen = cluster.screens[0]
    pages = {name for name, address in EVERYWHERE.items() if screen.person.browser.get(address).status_code != 405}
    registered = {name for name in topics._topics if not name.startswith("test:")}
    looked_at = {resolve(urlsplit(address).path).view_name for address in screen.addresses}
    subscribed = {topics.parse(topic)[0] for topic in screen.rendered}
    found = (pages - looked_at) | (registered - subscribed)
    assert found == NOT_LOOKED_AT.keys(), " ".join(sorted(found ^ NOT_LOOKED_AT.keys()))
