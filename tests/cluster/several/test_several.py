"""What VOLCANO_UI_CLUSTERS says, where the pages of several clusters are and how each is; one set of accounts, and roles that each gives by itself."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from hypothesis import given
from hypothesis import strategies as st

from cluster import access
from cluster.access import accounts
from cluster.access.roles import Role
from cluster.models import AuditEntry, Identity, LoginFailure, LoginLink, Object, RoleBinding, Token
from cluster.remote.freshness import Word
from cluster.remote.ways import Way
from cluster.several import addresses, entries, reports, router
from cluster.several.addresses import Route, counterpart, route
from cluster.several.entries import EntriesError, Entry
from cluster.several.reports import SILENT_MS, Report
from jobs.models import Operation
from kube.errors import Conflict, Forbidden
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db
NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
PATHS = st.from_regex(r"/[A-Za-z0-9._/-]{1,20}", fullmatch=True)
CONTEXTS = st.from_regex(r"([A-Za-z0-9@._/:-]{0,20}x)?", fullmatch=True)
AWS = "arn:aws:eks:eu-west-1:1:cluster/eu"


@cases("text, expected", {
    "nothing": ("", ()),
    "the embedded one": ("home=embedded", (Entry("home"),)),
    "the current context": ("dev=~/.kube/config", (Entry("dev", "~/.kube/config"),)),
    "a context": ("dev=/c#one", (Entry("dev", "/c", "one"),)),
    "a way": ("dev=/c#one:in-place", (Entry("dev", "/c", "one", "in-place"),)),
    "a way, and no context": ("dev=/c:read-only", (Entry("dev", "/c", "", "read-only"),)),
    "a context with colons": (f"eu=/c#{AWS}", (Entry("eu", "/c", AWS),)),
    "the cluster of this pod": ("here=in-cluster", (Entry("here", "in-cluster"),)),
    "several, in lines": (" home=embedded,\n a=/a ,b=/b\n", (Entry("home"), Entry("a", "/a"), Entry("b", "/b"))),
})  # fmt: skip
def test_each_entry_is_a_cluster(text, expected):
    assert entries.parse(text) == expected


@cases("text, words", {
    "no source": ("dev", "'dev' does not say which cluster it is; write NAME=KUBECONFIG"),
    "an empty source": ("dev=", "'dev=' does not say"),
    "a capital": ("Dev=/c", "'Dev' cannot be a cluster's name"),
    "a slash": ("a/b=/c", "'a/b' cannot be a cluster's name"),
    "no name": ("=/c", "'' cannot be a cluster's name"),
    "a long name": (f"{'a' * 64}=/c", "at most 63"),
    "a name twice": ("a=/c,a=/d", "a is named twice"),
    "embedded second": ("a=/c,b=embedded", "b is embedded and not the first; put it first"),
    "embedded twice": ("a=embedded,b=embedded", "b is embedded and not the first"),
    "a context of nothing": ("a=#one", "names a context or a way but no kubeconfig"),
    "a way of ours": ("a=embedded:in-place", "names a context or a way but no kubeconfig"),
})  # fmt: skip
def test_what_is_wrong_is_named_with_a_remedy(text, words):
    with pytest.raises(EntriesError) as refused:
        entries.parse(text)
    assert words in str(refused.value)


ENTRIES = st.builds(Entry, NAMES, PATHS, CONTEXTS, st.sampled_from(["", *(way.value for way in Way)]))


@given(st.lists(ENTRIES, unique_by=lambda entry: entry.name))
def test_text_of_entries_is_read_as_the_same_entries(found):
    assert entries.parse(entries.text(found)) == tuple(found)


PAGES = {"/c/a/", "/c/a/jobs/", "/c/a/jobs/new/", "/c/a/queues/"}


@cases("path, expected", {
    "the first page": ("/c/a/", "/c/b/"),
    "a list": ("/c/a/jobs/", "/c/b/jobs/"),
    "a form": ("/c/a/jobs/new/", "/c/b/jobs/new/"),
    "an object goes to its list": ("/c/a/jobs/default/one/", "/c/b/jobs/"),
    "a page of an object": ("/c/a/jobs/default/one/log/", "/c/b/jobs/"),
    "no page at all": ("/c/a/nowhere/x", "/c/b/"),
    "another cluster whose name begins alike": ("/c/ab/jobs/", "/c/b/"),
    "another site": ("//evil.example/", "/c/b/"),
})  # fmt: skip
def test_counterpart_is_the_page_or_the_nearest_list(path, expected):
    assert counterpart(path, "c/a/", "c/b/", PAGES.__contains__) == expected


@cases("path, expected", {
    "a cluster's page": ("/c/a/jobs/", Route("a")),
    "another one's": ("/c/b/", Route("b")),
    "without the slash": ("/c/a", Route(moved="/c/a/")),
    "the first page": ("/", Route(moved="/c/a/")),
    "an address of one cluster": ("/jobs/?", Route(moved="/c/a/jobs/?")),
    "another site": ("//evil.example", Route(moved="/c/a//evil.example")),
    "no such cluster": ("/c/none/", Route()),
    "no name": ("/c/", Route()),
    "a name written otherwise": ("/c/%61/", Route()),
})  # fmt: skip
def test_route(path, expected):
    assert route(path, {"a": 1, "b": 2}, "a") == expected


@given(st.text())
def test_nobody_is_sent_to_another_site(path):
    moved = route(f"/{path}", ["a"], "a").moved
    assert not moved or moved.startswith(f"/{addresses.prefix('a')}")
    assert counterpart(f"/{path}", "c/a/", "c/b/", lambda _: True).startswith("/c/b/")


NOW = 1_000_000
AWAY = Report(Word.AWAY, "beside", NOW - 90_000, "connection refused", NOW)


@cases("report, now, word, since", {
    "at once": (AWAY, NOW, Word.AWAY, NOW - 90_000),
    "a while ago": (AWAY, NOW + SILENT_MS, Word.AWAY, NOW - 90_000),
    "too long ago": (AWAY, NOW + SILENT_MS + 1, Word.STOPPED, NOW),
    "never": (None, NOW, Word.STOPPED, 0),
})  # fmt: skip
def test_who_is_silent_does_not_run_since_it_was_heard_last(report, now, word, since):
    judged = reports.judge(report, now)
    assert (judged.word, judged.since, judged.way) == (word, since, "beside" if report else "")


def test_report_that_is_written_is_read(tmp_path):
    folder = reports.folder(tmp_path)
    reports.write(folder, "dev", AWAY)
    assert reports.read(folder, "dev") == AWAY
    assert [path.name for path in folder.iterdir()] == ["dev.json"]
    reports.forget(folder, "dev")
    assert reports.read(folder, "dev") is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"word": "merry"}', b"[]"])
def test_what_is_no_report_counts_as_none(tmp_path, content):
    (tmp_path / "dev.json").write_bytes(content)
    assert reports.read(tmp_path, "dev") is None


@pytest.fixture
def elsewhere(settings):
    """Let this process be about a cluster that is not the first of several; its accounts are in the same database here."""
    home = settings.DATA

    def go(place):
        settings.HOME, settings.DATA = home, home / "clusters" / place if place else home
        settings.ROLES_OF = place

    return go


@cases("models, database", {
    "of the first for accounts": ([User, Group, User.groups.through, Session, RoleBinding, Identity, LoginLink, LoginFailure], "accounts"),
    "a cluster's own for all else": ([Object, AuditEntry, Token, Operation], "default"),
})  # fmt: skip
def test_the_database_of_a_model(settings, models, database):
    settings.ACCOUNTS_DATABASE = "accounts"
    for model in models:
        assert router.Accounts().db_for_read(model) == router.Accounts().db_for_write(model) == database


def test_a_role_counts_in_the_cluster_that_gave_it(elsewhere):
    user = make_user("alice")
    elsewhere("dev-1")
    accounts.bind_role(access.CONSOLE, Role.OPERATOR, "team", user=user)
    assert access.allowed(access.for_user(user), "delete", "jobs.batch.volcano.sh", "team")
    assert [each.role for each in accounts.role_bindings()] == [Role.OPERATOR]
    for other in ("", "prod-2"):
        elsewhere(other)
        assert not access.allowed(access.for_user(user), "list", "jobs.batch.volcano.sh", "team")
        assert accounts.role_bindings() == []
        assert accounts.users()[0].bindings == ()


def test_the_same_role_is_given_and_taken_in_each_cluster_by_itself(elsewhere):
    user = make_user("alice")
    for place in ("", "dev-1"):
        elsewhere(place)
        accounts.bind_role(access.CONSOLE, Role.VIEWER, "team", user=user)
    accounts.unbind_role(access.CONSOLE, "team", user=user)
    assert accounts.role_bindings() == []
    elsewhere("")
    assert [each.role for each in accounts.role_bindings()] == [Role.VIEWER]


def test_every_cluster_keeps_somebody_who_administers_it(elsewhere):
    """An account that is needed in one cluster cannot be closed in another."""
    here, there = make_user("here"), make_user("there")
    accounts.bind_role(access.CONSOLE, Role.ADMINISTRATOR, "*", user=here)
    elsewhere("dev-1")
    accounts.bind_role(access.CONSOLE, Role.ADMINISTRATOR, "*", user=there)
    elsewhere("")
    with pytest.raises(Conflict, match="nobody who administers"):
        accounts.set_active(access.CONSOLE, there, active=False)
    make_user("root", is_superuser=True)
    accounts.set_active(access.CONSOLE, there, active=False)


def test_accounts_are_changed_only_in_the_cluster_that_keeps_them(settings):
    settings.ACCOUNTS_DATABASE, settings.CLUSTERS = "accounts", (Entry("home"), Entry("dev", "/c"))
    root = access.for_user(User(pk=1, username="root"))
    for verb in ("create", "update", "delete"):
        with pytest.raises(Forbidden, match="kept by the cluster home; change them there"):
            access.require(root, verb, "users", "")
    assert router.refusal("list", "users") == router.refusal("update", "roles") == ""
    settings.ACCOUNTS_DATABASE = "default"
    assert router.refusal("update", "users") == ""
