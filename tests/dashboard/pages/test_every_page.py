"""The five questions of every page: works, wrong method, not logged in, another namespace, strange input."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.test import Client

from tests.dashboard.pages.conftest import page
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
PAGES = ["/", "/nodes/", "/nodes/one/", "/network/", "/events/", "/audit/", "/access/", "/queues/", "/queues/vision/",
         "/queues/-/new/", "/queues/vision/edit/", "/connect/"]  # fmt: skip
LISTS = ["/nodes/", "/nodes/one/", "/network/", "/events/", "/audit/", "/queues/", "/queues/vision/"]
POSTS = [
    "/access/users/", "/access/users/admin/link/", "/access/users/admin/active/", "/access/users/admin/password/", "/access/roles/",
    "/access/roles/remove/", "/access/namespaces/", "/connect/tokens/1/revoke/", "/queues/vision/open/", "/queues/vision/close/", "/queues/vision/delete/",
    "/room/team-b/other/release/", "/theme/",
]  # fmt: skip


@pytest.mark.parametrize("address", PAGES)
def test_a_page_works_is_well_formed_and_keeps_to_the_policy(admin, address):
    shown = page(admin, address)
    assert shown.status == 200
    assert {"private", "no-store"} <= {each.strip() for each in shown.answer.headers["Cache-Control"].split(",")}
    assert len([*shown.all(tag="h1")]) == 1
    assert shown.one(tag="main") is not None
    ids = [element.get("id") for element in shown.tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in shown.tree.iter():
        assert not [name for name in element.attrib if name == "style" or name.startswith("on")]
        assert element.tag != "style"
        assert element.tag != "script" or element.get("src")
    # The revision is that of the log, which these do not show.
    if address in ("/audit/", "/access/", "/nodes/"):
        assert ("Data as of revision" in shown.text(tag="footer")) == (address == "/nodes/")


@pytest.mark.parametrize("address", [*PAGES[:8], *POSTS])
def test_what_is_read_is_not_posted_and_a_change_is_not_read(admin, address):
    answer = admin.get(address) if address in POSTS else admin.post(address)
    assert answer.status_code == 405


@pytest.mark.parametrize("address", [*PAGES, *POSTS[:-1]])
def test_nothing_is_shown_without_login(address):
    answer = Client().get(address) if address in PAGES else Client().post(address)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.parametrize("address", [*POSTS[:-1], "/queues/-/new/", "/queues/vision/edit/"])
def test_a_viewer_changes_nothing(alice, address):
    answer = alice.post(
        address,
        {
            "password": "correct horse 7",
            "name": "x",
            "kind": "user",
            "subject": "alice",
            "role": "viewer",
            "namespace": "*",
            "weight": 3,
        },
    )
    assert answer.status_code in (302, 403, 404)
    if answer.status_code == 302:
        assert "forbidden" in page(alice, answer["Location"]).text(id="toasts")


@pytest.mark.parametrize("address", POSTS[:-1])
def test_a_change_needs_the_token_of_the_page(admin, address):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin.user)
    answer = browser.post(address)
    assert answer.status_code == 403
    assert b"too old" in answer.content


@pytest.mark.parametrize("address", ["/", "/events/", "/nodes/one/", "/queues/vision/", "/queues/default/"])
def test_another_namespace_stays_unseen(alice, address):
    shown = page(alice, address).text(tag="main")
    assert "team-b" not in shown
    assert "other-0" not in shown


def test_a_simulated_node_says_who_may_come(alice):
    wish = 'nodeSelector ui.volcano.sh/simulated: "true"'
    assert wish in page(alice, "/nodes/sim-1/").text(id="node-head")
    assert "ui.volcano.sh/simulated=true:NoSchedule" in page(alice, "/nodes/sim-1/").text(id="node-head")
    assert wish not in page(alice, "/nodes/one/").text(id="node-head")


@pytest.mark.parametrize("address", ["/audit/", "/access/", "/queues/-/new/", "/queues/vision/edit/"])
def test_a_page_for_others_says_what_it_takes(alice, address):
    shown = page(alice, address)
    assert shown.status == 403
    assert "administrator" in shown.text(tag="main")


@pytest.mark.parametrize("address", PAGES)
def test_somebody_without_a_role_sees_nothing(stranger, address):
    shown = page(stranger, address)
    assert shown.status == 403 or shown.one(id="table-rows") is None or not shown.rows()
    if address == "/":
        assert "You may not see jobs anywhere" in shown.text(tag="main")


STRANGE = [
    "page=0", "page=-1", "page=999999", "page=x", "page=" + "9" * 400, "per=7", "per=x", "sort=evil", "sort=-", "phase=Nonsense", "kind=none",
    "q=" + quote("<script>alert(1)</script>"), "q=" + quote("../../etc/passwd"), "q=" + "x" * 3000, "q=%00", "q=%F0%9F%8C%8B", "q=%25_!", "namespace=%27%20OR%201=1",
]  # fmt: skip


@pytest.mark.parametrize("query", STRANGE)
@pytest.mark.parametrize("address", LISTS)
def test_a_strange_query_is_answered_gracefully(admin, address, query):
    shown = page(admin, f"{address}?{query}")
    assert shown.status == 200
    assert not [*shown.all(tag="script", src=None)]


@pytest.mark.parametrize(
    "address", ["/nodes/none/", "/queues/none/", "/queues/none/edit/", "/queues/..%2f/", "/nodes/%00/", "/nothing/"]
)
def test_what_is_not_there_is_a_404_that_helps(admin, address):
    shown = page(admin, address)
    assert shown.status == 404
    assert shown.one(tag="a", href="/") is not None


@pytest.mark.parametrize("address", LISTS)
def test_htmx_gets_the_table_alone_and_the_canonical_address(admin, address):
    answer = admin.get(address + "?page=1&q=&per=25&sort=", headers={"HX-Request": "true"})
    assert answer["HX-Push-Url"] == f"{address}?per=25"
    assert answer["Vary"].find("HX-Request") >= 0
    assert b"<!doctype" not in answer.content.lower()


@pytest.mark.parametrize("theme", ["dark", "light", "", "evil"])
@pytest.mark.parametrize("next_", ["/nodes/", "https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_the_theme_is_written_into_the_next_page_of_this_site(admin, theme, next_):
    answer = admin.post("/theme/", {"theme": theme, "next": next_})
    assert answer["Location"] == (next_ if next_ == "/nodes/" else "/")
    assert page(admin, "/nodes/").one(tag="html").get("data-theme") == (theme if theme in ("dark", "light") else None)


@cases("sent, headers, code, said", {
    "too large": ({"text": "a" * (8 * 1024 * 1024)}, {}, 413, "larger than 8 MB"),
    "too many fields": ({f"f{n}": "1" for n in range(1001)}, {}, 413, "more than 1,000 fields"),
    "another name": ({}, {"host": "elsewhere.example"}, 400, "VOLCANO_UI_HOSTS"),
})  # fmt: skip
def test_a_request_beyond_the_limits_is_told_which(admin, sent, headers, code, said):
    answer = admin.post("/theme/", sent, headers=headers)
    assert answer.status_code == code
    assert said in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_is_said_also_where_no_object_is_written(admin, full_disk):
    # The first rows may still fit into pages that are there.
    answers = (admin.post("/access/users/admin/link/") for _ in range(100))
    answer = next(answer for answer in answers if answer.status_code != 302)
    assert answer.status_code == 503
    assert "database or disk is full" in answer.content.decode()
