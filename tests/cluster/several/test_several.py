"""What VOLCANO_UI_CLUSTERS says, where the pages of several clusters are, how each is, and which keeps the accounts."""

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from hypothesis import given
from hypothesis import strategies as st

from cluster import access
from cluster.access import router
from cluster.models import AuditEntry, Identity, LoginFailure, LoginLink, Object, RoleBinding, Token
from cluster.remote.freshness import State
from cluster.remote.mirroring.ways import Way
from cluster.several import addresses, entries, reports
from cluster.several.addresses import counterpart, route
from cluster.several.entries import Entry
from cluster.several.reports import SILENT_MS, Report
from jobs.models import Operation
from kube.errors import Forbidden
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.tables import cases

pytestmark = pytest.mark.django_db
NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
PATHS = st.from_regex(r"/[A-Za-z0-9._/-]{1,20}", fullmatch=True)
CONTEXTS = st.from_regex(r"([A-Za-z0-9@._/:-]{0,20}x)?", fullmatch=True)


PAGES = {"/c/a/", "/c/a/jobs/", "/c/a/jobs/new/", "/c/a/queues/"}
FUNCTIONS = {
    "each entry is a cluster, and what is wrong is named with a remedy": lambda text: [*map(repr, entries.parse(text))],
    "the same page of another cluster, or the nearest list": lambda path: counterpart(path, "c/a/", "c/b/", PAGES.__contains__),
    "to which cluster an address leads": lambda path: route(path, {"a": 1, "b": 2}, "a"),
}  # fmt: skip


@blocks("several", folder="cluster")
def test_where_clusters_are(block, golden):
    golden(block, of_values(FUNCTIONS[block.title], entries.EntriesError))


ENTRIES = st.builds(Entry, NAMES, PATHS, CONTEXTS, st.sampled_from(["", *(way.value for way in Way)]))


@given(st.lists(ENTRIES, unique_by=lambda entry: entry.name))
def test_text_of_entries_is_read_as_the_same_entries(found):
    assert entries.parse(entries.text(found)) == tuple(found)


@given(st.text())
def test_nobody_is_sent_to_another_site(path):
    moved = route(f"/{path}", ["a"], "a").moved
    assert not moved or moved.startswith(f"/{addresses.prefix('a')}")
    assert counterpart(f"/{path}", "c/a/", "c/b/", lambda _: True).startswith("/c/b/")


NOW = 1_000_000
AWAY = Report(State.AWAY, "beside", NOW - 90_000, "connection refused", NOW)


@cases("report, now, word, since", {
    "at once": (AWAY, NOW, State.AWAY, NOW - 90_000),
    "a while ago": (AWAY, NOW + SILENT_MS, State.AWAY, NOW - 90_000),
    "too long ago": (AWAY, NOW + SILENT_MS + 1, State.STOPPED, NOW),
    "never": (None, NOW, State.STOPPED, 0),
})  # fmt: skip
def test_who_is_silent_does_not_run_since_it_was_heard_last(report, now, word, since):
    judged = reports.judge(report, now)
    assert (judged.word, judged.since, judged.way) == (word, since, "beside" if report else "")


def test_report_that_is_written_is_read_and_what_is_none_counts_as_none(tmp_path):
    folder = reports.folder(tmp_path)
    reports.write(folder, "dev", AWAY)
    assert reports.read(folder, "dev") == AWAY
    assert [path.name for path in folder.iterdir()] == ["dev.json"]
    for content in (b"", b"{", b'{"word": "merry"}', b"[]"):
        (folder / "dev.json").write_bytes(content)
        assert reports.read(folder, "dev") is None
    reports.forget(folder, "dev")
    assert reports.read(folder, "dev") is None


@cases("models, database", {
    "of the first for accounts": ([User, Group, User.groups.through, Session, RoleBinding, Identity, LoginLink, LoginFailure], "accounts"),
    "a cluster's own for all else": ([Object, AuditEntry, Token, Operation], "default"),
})  # fmt: skip
def test_the_database_of_a_model(settings, models, database):
    settings.ACCOUNTS_DATABASE = "accounts"
    for model in models:
        assert router.Accounts().db_for_read(model) == router.Accounts().db_for_write(model) == database
    assert router.Accounts().allow_relation(Operation, User), "what is kept here may name a user"


def test_accounts_are_changed_only_in_the_cluster_that_keeps_them(settings):
    settings.ACCOUNTS_DATABASE, settings.CLUSTERS = "accounts", (Entry("home"), Entry("dev", "/c"))
    root = access.for_user(User(pk=1, username="root"))
    for verb in ("create", "update", "delete"):
        with pytest.raises(Forbidden, match="kept by the cluster home; change them there"):
            access.require(root, verb, "users", "")
    assert router.refusal("list", "users") == router.refusal("update", "roles") == ""
    settings.ACCOUNTS_DATABASE = "default"
    assert router.refusal("update", "users") == ""
