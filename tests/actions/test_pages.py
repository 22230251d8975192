"""What all pages have in common, asked at every address: who gets in, by which methods, and what comes back."""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from cluster import access, api
from cluster.models import RoleBinding
from cluster.store import Create, store
from kube.resources import CRON_JOBS, EVENTS, JOB_FLOWS, JOB_TEMPLATES, JOBS, NAMESPACES, NODES, PODS, QUEUES
from proof.harness.clocks import ManualClock
from proof.quality.grid import addresses
from tests.actions.world import NAMESPACE, Cluster, cron, job, named
from tests.dashboard.pages.conftest import Page

NAMES = {
    "jobs": "vault-long", "jobs:resume": "vault-paused", "jobs:template-kept": "vault-steps",
    "cronjobs": "vault-nightly", "sweeps": "vault-old",
    "flows": "vault-flow", **dict.fromkeys(("flows:template", "flows:run", "flows:delete-template"), "vault-steps"),
    "queues": "spare", "dashboard:node": "sim-0001", "dashboard": "olive", "dashboard:release-room": "vault-long",
}  # fmt: skip
# Where one comes to log in, and what anybody may have.
PUBLIC = {
    "healthz", "accounts:login", "accounts:logout", "accounts:oidc", "accounts:arrival", "accounts:connection",
    "accounts:link", "dashboard:theme",
}  # fmt: skip
# To these something is only sent; to those with a form of their own, too; all others are only read.
SENT = {
    "jobs:validate", "jobs:run-sample", "jobs:operation-confirm", "jobs:operation-stop", "flows:run", "flows:delete",
    "flows:delete-template", "cronjobs:suspend", "cronjobs:resume", "cronjobs:run", "cronjobs:delete", "sweeps:delete",
    "queues:set-state", "queues:delete", "queues:reset-scheduler", "dashboard:release-room", "dashboard:create-user",
    "dashboard:make-link", "dashboard:set-active", "dashboard:set-password", "dashboard:bind-role",
    "dashboard:unbind-role", "dashboard:create-namespace", "dashboard:revoke-token",
}  # fmt: skip
FORMS = {
    *(f"jobs:{each}" for each in ("new", "edit", "scale", "template-new", "operations")),
    *(f"jobs:{each}" for each in ("suspend", "resume", "restart", "complete", "terminate", "delete")),
    *("sweeps:new", "queues:new", "queues:edit", "queues:scheduler", "accounts:password_change"),
    *("dashboard:connect", "dashboard:add-machine"),
}
FILES = {"jobs:yaml", "jobs:log"}
MISSING = {"jobs:operation", "jobs:template-kept"}  # nobody has made one
# What anybody may do: choose jobs, of which each is then judged, and what is one's own; and no room is kept here.
OWN = {"jobs:operations", "dashboard:connect", "dashboard:release-room", "accounts:password_change"}
STRANGE = (
    "page=9999999999&per=7&sort=-evil&phase=Nonsense&q=%00", "page=x&q=<script>alert(1)</script>&value-rate=%00",
    f"page=-1&q={'x' * 3000}&phase=None", "q=%25_!&namespace=%27%20OR%201=1&per=x&created=x&owner=<script>",
)  # fmt: skip
TEXT = json.dumps(job("made"))
MAX_QUERIES = {"sweeps:new": 127}  # session and user included; the form of a sweep looks at each of its jobs


def address(name, parameters):
    object_name = NAMES.get(name) or NAMES.get(name.partition(":")[0], "x")
    values = {"namespace": NAMESPACE, "number": 1, "state": "open", "sample": "primes", "slug": "pytorch", "token": "x"}
    query = f"?pod={object_name}-main-0" if name == "jobs:log" else ""
    return reverse(name, kwargs={each: values.get(each, object_name) for each in parameters}) + query


PATTERNS = dict(addresses(get_resolver()))
EVERYWHERE = {name: address(name, parameters) for name, parameters in PATTERNS.items()}
ADDRESSES = {name: address for name, address in EVERYWHERE.items() if name not in PUBLIC}
READ = [name for name in ADDRESSES if name not in SENT]
PAGES = [name for name in READ if name not in FILES | MISSING]
CHANGES = [name for name in ADDRESSES if name in SENT | FORMS and name != "jobs:validate"]
PLACED = [name for name in ADDRESSES if "namespace" in PATTERNS[name]]


@pytest.fixture
def people(world, db):
    """Those who have accounts in the cluster, which stands still."""
    with Cluster(ManualClock(world.us)).here():
        yield world


@pytest.fixture
def reader(people):
    return people.reader.browser


def somebody(role, **options):
    """A browser of somebody with a role in the namespace where everything is, or without any."""
    user = User.objects.create_user("somebody")
    if role:
        RoleBinding.objects.create(user=user, namespace=NAMESPACE, role=role)
    browser = Client(**options)
    browser.force_login(user)
    return browser


@pytest.mark.parametrize("name", ADDRESSES)
def test_who_is_not_logged_in_is_led_to_the_login(people, name):
    answer = Client().post(ADDRESSES[name]) if name in SENT else Client().get(ADDRESSES[name])
    assert (answer.status_code, answer.get("Location", "")[:7]) == (302, "/login/")


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_is_read_or_sent_to(reader, name):
    assert (reader.get(ADDRESSES[name]).status_code == 405) == (name in SENT)
    if name not in SENT | FORMS:
        assert reader.post(ADDRESSES[name]).status_code == 405


@pytest.mark.parametrize("name", [*CHANGES, "jobs:validate"])
def test_a_change_needs_the_token_of_the_page(people, name):
    browser, before = somebody("administrator", enforce_csrf_checks=True), store.revision()
    assert (browser.post(ADDRESSES[name]).status_code, store.revision()) == (403, before)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_and_keeps_to_the_policy(reader, name):
    document = Page(reader.get(ADDRESSES[name]))
    assert (document.status, len([*document.all(tag="h1")]), len([*document.all(tag="main")])) == (200, 1, 1)
    assert {"private", "no-store"} <= {*document.answer["Cache-Control"].replace(" ", "").split(",")}
    ids = [element.get("id") for element in document.tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in document.tree.iter():
        assert not [each for each in element.attrib if each == "style" or each.startswith("on")]
        assert element.tag != "style"
        assert element.tag != "script" or element.get("src") or element.get("type") == "application/json"


@pytest.mark.parametrize("name", PLACED)
def test_in_a_namespace_without_a_role_nothing_is_read_or_changed(people, name):
    outsider, before = people.outsider.browser, store.revision()
    if name not in SENT:
        assert outsider.get(ADDRESSES[name]).status_code == 403
    if name in SENT | FORMS:
        assert is_forbidden(outsider, outsider.post(ADDRESSES[name]))
    assert store.revision() == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_viewer_changes_nothing(people, name):
    viewer, before = somebody("viewer"), store.revision()
    answer = viewer.post(
        ADDRESSES[name], {"namespace": NAMESPACE, "name": "x", "text": TEXT, "action": "delete", "which": "all"}
    )
    assert is_forbidden(viewer, answer) or name in OWN
    assert store.revision() == before


def is_forbidden(browser, answer):
    """Say whether something was refused, at once or in words on the page to which it led."""
    if answer.status_code == 302:
        return "forbidden" in Page(browser.get(answer["Location"])).text(id="toasts")
    return answer.status_code in (403, 404, 422)


@pytest.mark.parametrize("name", PAGES)
def test_a_viewer_is_offered_nothing_that_changes_an_object(people, name):
    document = Page(somebody("viewer").get(ADDRESSES[name]))
    offered = {each for each in document.actions() if not re.match(r"/(theme|logout|connect|password)/", each)}
    assert offered <= {ADDRESSES["jobs:operations"]}


@pytest.mark.parametrize("name", [name for name in PAGES if name not in FORMS])
def test_a_strange_query_is_answered(reader, name):
    for query in STRANGE:
        document = Page(reader.get(f"{ADDRESSES[name]}?{query}"))
        assert document.status in (200, 422), query
        assert "<script>" not in document.answer.content.decode()


@pytest.mark.parametrize("name", [name for name in PLACED if name in PAGES])
def test_what_is_not_there_is_a_404_or_not_for_its_reader(reader, name):
    object_name = NAMES.get(name) or NAMES[name.partition(":")[0]]
    for other in ("none", "..%2f", "%3Cscript%3E", "🌋", "a" * 300, "x%0Ay"):
        answer = reader.get(ADDRESSES[name].replace(f"/{object_name}/", f"/{other}/"))
        assert answer.status_code == 404
        assert b"<script>" not in answer.content.split(b"<main")[-1]


def test_no_page_takes_many_queries_and_none_more_where_there_is_more_to_show(reader):
    before = {name: queries(reader, ADDRESSES[name]) for name in PAGES}
    assert {name: number for name, number in before.items() if number > MAX_QUERIES.get(name, 26)} == {}
    pod = store.get(PODS, NAMESPACE, "vault-long-main-0").object
    about = {key: pod["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
    involved = {"kind": "Job", "name": "vault-long", "namespace": NAMESPACE, "uid": about["ownerReferences"][0]["uid"]}
    for number in range(10):
        more = named(f"vault-long-main-{number + 9}")["metadata"] | about
        store.write(
            Create(PODS, {**pod, "metadata": more}), Create(EVENTS, named(f"m-{number}", involvedObject=involved))
        )
        for resource, obj in (
            (JOB_TEMPLATES, named(f"more-{number}", spec=job("x")["spec"])),
            (JOB_FLOWS, named(f"more-{number}", spec={"flows": [{"name": "vault-steps"}]})),
            (CRON_JOBS, cron(f"more-{number}")),
            (QUEUES, named(f"more-{number}", "", spec={"weight": 1})),
            (NAMESPACES, named(f"more-{number}", "")),
            (NODES, named(f"more-{number}", "")),
            (JOBS, job(f"more-{number}")),
        ):
            api.create(access.SYSTEM, resource, obj)
    grown = {name: (before[name], now) for name in PAGES if (now := queries(reader, ADDRESSES[name])) > before[name]}
    assert grown == {}


def queries(browser, where):
    browser.get(where)  # what a process reads once
    with CaptureQueriesContext(connection) as captured:
        browser.get(where)
    return len(captured)
