"""The menu of several clusters, on the pages of the first of them."""

import re

import pytest

from cluster import access, clock
from cluster.remote.freshness import State
from cluster.several import reports
from cluster.several.entries import Entry
from cluster.several.reports import Report
from dashboard.live import TopicRequest
from dashboard.live.topics import find
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("several")
HOME, DEV = Entry("home"), Entry("dev", "/c")


@pytest.fixture
def several(settings, tmp_path):
    settings.CLUSTERS, settings.CLUSTER, settings.CLUSTER_NAME = (HOME, DEV), HOME, "home"
    settings.STATE = tmp_path


def report(settings, word, **fields):
    reports.write(reports.folder(settings.STATE), "dev", Report(word, "beside", at=clock.milliseconds(), **fields))


def menu(answer):
    """The addresses of the menu, and its words for each cluster."""
    text = answer.content.decode().partition('id="clusters"')[2].partition("</nav>")[0]
    return re.findall(r'<a [^>]*href="([^"]*)"', text), re.findall(r'data-word="([^"]*)"', text)


@cases("path, there", {
    "the first page": ("/", "/c/dev/"),
    "a list and its filters": ("/jobs/?namespace=default", "/c/dev/jobs/?namespace=default"),
    "an object": ("/jobs/default/none/?tab=logs", "/c/dev/jobs/"),
    "a page of the embedded cluster alone": ("/connect/", "/c/dev/"),
    "no page": ("/no/such/page/", "/c/dev/"),
})  # fmt: skip
def test_it_leads_to_the_same_page(admin, path, there):
    assert menu(admin.get(path))[0][1] == there


def test_from_a_form_that_was_refused_it_leads_to_the_page_of_the_form(admin):
    answer = admin.post("/access/users/", {"name": "a b"})
    assert (answer.status_code, menu(answer)[0][1]) == (422, "/c/dev/access/")


def test_it_says_how_each_cluster_is(admin, settings):
    assert menu(admin.get("/"))[1] == ["not running", "not running"]
    report(settings, State.AWAY, since=1_700_000_000_000, why="connection refused")
    answer = admin.get("/")
    assert menu(answer)[1] == ["not running", "away"]
    assert all(words in answer.content.decode() for words in ("2023-11-14 22:13:20 UTC", "beside Volcano"))


def test_it_follows(admin, settings):
    parts = find("clusters")
    report(settings, State.LIVE)
    request = TopicRequest(access.for_user(admin.user), {})
    before = parts(request)
    assert list(before.parts) == ["state-of-cluster-home", "state-of-cluster-dev"]
    assert before.again is not None
    report(settings, State.LOADING)
    assert 'data-word="loading"' in parts(request).parts["state-of-cluster-dev"]


def test_who_is_not_logged_in_learns_no_name_and_one_cluster_has_no_menu(client, admin, settings):
    for path in ("/login/", "/no/such/page/"):
        assert b'id="clusters"' not in client.get(path).content
    settings.CLUSTERS, settings.CLUSTER = (), None
    assert b'id="clusters"' not in admin.get("/").content
