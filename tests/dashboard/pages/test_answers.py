"""What pages answer beside what they show: to HTMX, beyond limits, to who may not, and what a cluster refuses."""

import pytest
from django.http import QueryDict

from cluster.access import Actor
from cluster.runtime import retries
from cluster.runtime.retries import Retries
from cluster.store import Create, Group, store
from dashboard.live import TopicRequest, topics
from kube.errors import Forbidden, NotFound
from kube.owners import controller_reference
from kube.resources import CRON_JOBS, EVENTS, JOB_FLOWS, JOBS, POD_GROUPS, QUEUES
from tests.dashboard.pages.conftest import Page, page, put
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
LISTS = ["/nodes/", "/nodes/one/", "/network/", "/events/", "/audit/", "/queues/", "/queues/vision/"]
DRAFT = "0123456789abcdef"


def test_what_is_no_object_is_of_no_revision(admin):
    for address, has_revision in (("/audit/", False), ("/access/", False), ("/nodes/", True)):
        assert ("Data as of revision" in page(admin, address).text(tag="footer")) == has_revision


@pytest.mark.parametrize("address", LISTS)
def test_htmx_gets_the_table_alone_and_the_canonical_address(admin, address):
    answer = admin.get(address + "?page=1&q=&per=25&sort=", headers={"HX-Request": "true"})
    assert answer["HX-Push-Url"] == f"{address}?per=25"
    assert "HX-Request" in answer["Vary"]
    assert b"<!doctype" not in answer.content.lower()


@cases("theme, following, address, chosen", {
    "of this site": ("dark", "/nodes/", "/nodes/", "dark"), "of another": ("light", "https://evil.example/", "/", "light"),
    "without a scheme": ("", "//evil.example/", "/", None), "a script": ("evil", "javascript:alert(1)", "/", None),
})  # fmt: skip
def test_the_theme_is_written_into_the_next_page_of_this_site(admin, theme, following, address, chosen):
    assert admin.post("/theme/", {"theme": theme, "next": following})["Location"] == address
    assert page(admin, "/nodes/").one(tag="html").get("data-theme") == chosen


@cases("sent, headers, code, message", {
    "too large": ({"text": "a" * (8 * 1024 * 1024)}, {}, 413, "larger than 8 MB"),
    "too many fields": ({f"f{n}": "1" for n in range(1001)}, {}, 413, "more than 1,000 fields"),
    "another name": ({}, {"host": "elsewhere.example"}, 400, "VOLCANO_UI_HOSTS"),
})  # fmt: skip
def test_a_request_beyond_the_limits_is_told_which(admin, sent, headers, code, message):
    answer = admin.post("/theme/", sent, headers=headers)
    assert answer.status_code == code
    assert message in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_is_said_also_where_no_object_is_written(admin, full_disk):
    # The first rows may still fit into pages that are there.
    somebody = {"role": "viewer", "namespace": "*"}
    answers = (admin.post("/access/users/", {"name": f"{'x' * 99}{number}", **somebody}) for number in range(100))
    answer = next(answer for answer in answers if answer.status_code != 302)
    assert answer.status_code == 503
    assert "database or disk is full" in answer.content.decode()


@pytest.mark.parametrize("sent", [DRAFT, "", "x" * 16, '"><script>', DRAFT + "0"])
def test_success_hands_the_draft_back_if_it_is_one_and_a_refusal_keeps_it(admin, sent):
    refused = Page(admin.post("/queues/-/new/", {"name": "-", "weight": "1", "draft": sent}))
    assert (refused.one(tag="form", **{"data-draft": "new queue"}).get("data-draft-id") == DRAFT) == (sent == DRAFT)
    answer = admin.post("/queues/-/new/", {"name": "lab", "weight": "1", "draft": sent})
    toast = page(admin, answer["Location"]).one(id="toasts").find("*")
    assert toast.get("data-draft") == (DRAFT if sent == DRAFT else None)


SERIES = {"count": 7, "lastObservedTime": "2026-01-01T00:09:00.000001Z"}


@cases("fields, times, seen", {
    "older": ({"count": 4, "lastTimestamp": "2026-01-01T00:05:00Z"}, "4", "2026-01-01T00:05:00"),
    "newer": ({"eventTime": "2026-01-01T00:00:00.000001Z", "series": SERIES}, "7", "2026-01-01T00:09:00"),
})  # fmt: skip
def test_an_event_shows_how_often_it_happened_and_when_last(admin, fields, times, seen):
    about = {"kind": "Pod", "name": "web-0", "namespace": "team-a"}
    (stored,) = put((EVENTS, {"metadata": {"name": "web-0", "namespace": "team-a"}, "involvedObject": about, **fields}))
    row = page(admin, "/events/").one(id=f"event-{stored.uid}")
    cells = {cell.get("data-label"): cell for cell in row.iter("td")}
    assert "".join(cells["Times"].itertext()).strip() == times
    assert cells["Last seen"].find(".//time").get("datetime").startswith(seen)


TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
JOB = {"tasks": [{"name": "main", "replicas": 1, "template": TEMPLATE}], "queue": "default"}
SPECS = {
    JOBS: JOB, QUEUES: {"weight": 1, "parent": "root"}, JOB_FLOWS: {"flows": [{"name": "one"}]},
    CRON_JOBS: {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}},
}  # fmt: skip
WORDS = 'pods "demo-main-0" is forbidden: <b>exceeded</b> quota'


def create(kind, name="demo", **metadata):
    namespace = "team-a" if kind.namespaced else ""
    obj = {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": SPECS.get(kind, {})}
    store.write(Create(kind, obj))
    return store.get(kind, namespace, name)


def refuse(consumer, key, times=retries.REPORTED_AFTER):
    consumer_retries = Retries(consumer, f"{consumer}/0", "default")
    for second in range(times):
        consumer_retries.timers([Group([], key)], [Forbidden(WORDS)], 1_800_000_000_000 + second * 1000)
    return consumer_retries


@cases("kind, consumer, address", {
    "job": (JOBS, "jobs", "/jobs/team-a/demo/"), "queue": (QUEUES, "queues", "/queues/demo/"),
    "flow": (JOB_FLOWS, "jobflows", "/flows/team-a/demo/"), "cron job": (CRON_JOBS, "cronjobs", "/cronjobs/team-a/demo/"),
})  # fmt: skip
def test_page_says_what_is_refused_in_whose_words_and_since_when(admin, reads, kind, consumer, address):
    create(kind)
    reads(admin, f"{address} refusals")
    consumer_retries = refuse(consumer, "team-a/demo" if kind.namespaced else "demo")
    reads(admin, f"{address} refusals")
    consumer_retries.timers([Group([], "team-a/demo" if kind.namespaced else "demo")], [[]], 1_800_000_100_000)
    reads(admin, f"{address} refusals")


def test_job_says_what_is_refused_about_its_pod_group(admin, reads):
    job = create(JOBS)
    create(POD_GROUPS, "demo-1", ownerReferences=[controller_reference(JOBS, "demo", job.uid)])
    create(POD_GROUPS, "other")
    for group in ("other", "demo-1"):
        refuse("scheduler", f"team-a/{group}")
        reads(admin, "/jobs/team-a/demo/ refusals")


def topic(browser, **params):
    query = QueryDict(mutable=True)
    query.update({"kind": JOBS.id, "namespace": "team-a", "name": "demo", **params})
    return topics.find("refusals")(TopicRequest(Actor(browser.user.username, user_id=browser.user.id), query))


def test_page_looks_again_when_it_was_tried_again(admin):
    create(JOBS)
    assert topic(admin).again is None
    refuse("jobs", "team-a/demo")
    (refusal,) = retries.current_refusals({"jobs": "team-a/demo"})
    assert topic(admin).again > refusal.due


def test_who_may_not_see_the_object_is_told_nothing(alice, stranger):
    create(JOBS)
    assert topic(alice).parts
    with pytest.raises(Forbidden):
        topic(stranger)
    with pytest.raises(NotFound):
        topic(alice, kind="secrets")
