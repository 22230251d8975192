from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from cluster.access import logins
from cluster.models import AuditEntry, LoginLink
from tests.tables import cases

from .conftest import make_user

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
PERSON = {"HTTP_SEC_FETCH_MODE": "navigate", "HTTP_SEC_FETCH_DEST": "document", "HTTP_SEC_FETCH_SITE": "none"}


@pytest.fixture
def alice():
    return make_user("alice", PASSWORD)


def path_of(user):
    return logins.login_link("http://testserver", user).removeprefix("http://testserver")


def who(client):
    return client.session.get("_auth_user_id")


def log_in(client, password=PASSWORD, name="alice", **extra):
    return client.post("/login/", {"username": name, "password": password, **extra})


def test_name_and_password_let_in(client, alice):
    answer = log_in(client)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert who(client) == str(alice.pk)


def test_a_wrong_password_is_answered_in_words_and_keeps_the_name(client, alice):
    answer = log_in(client, "wrong")
    assert answer.status_code == 401
    assert b"Name and password do not match" in answer.content
    assert b'value="alice"' in answer.content
    assert who(client) is None


def test_too_many_failures_are_told_when_to_come_back_even_with_the_right_password(client, alice):
    for _ in range(5):
        log_in(client, "wrong")
    answer = log_in(client)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 800
    assert b"one-time link" in answer.content


def test_failures_from_one_address_do_not_lock_out_another(client, alice):
    for _ in range(6):
        log_in(client, "wrong")
    answer = client.post("/login/", {"username": "alice", "password": PASSWORD}, REMOTE_ADDR="10.1.1.1")
    assert answer.status_code == 302


def test_a_browser_that_was_in_before_is_not_locked_out_by_others_at_its_address(client, alice, client_factory):
    log_in(client)
    client.post("/logout/")
    for _ in range(6):
        log_in(client_factory(), "wrong")
    assert log_in(client).status_code == 302


@pytest.fixture
def client_factory():
    from django.test import Client

    return Client


def test_a_deactivated_user_is_not_let_in(client):
    make_user("alice", PASSWORD, is_active=False)
    assert log_in(client).status_code == 401


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/jobs/?phase=Running", "/jobs/?phase=Running"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_next_is_followed_only_inside_this_site(client, alice, target, location):
    assert log_in(client, next=target).headers["Location"] == location


def test_a_login_changes_the_session_key(client, alice):
    client.session.save()
    session = client.session
    session["theme"] = "dark"
    session.save()
    before = client.session.session_key
    log_in(client)
    assert client.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()


def test_cookies_are_safe(client, alice, settings):
    answer = log_in(client)
    for cookie in answer.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
    assert any(name.startswith("volcano_ui_known_") for name in answer.cookies)


@pytest.mark.parametrize("path", ["/login/", "/login/abc/", "/password/"])
def test_answers_are_kept_out_of_caches_and_referrers(client, path):
    answer = client.get(path)
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "no-store" in answer.headers["Cache-Control"]


def test_hostile_names_are_shown_as_text(client):
    answer = log_in(client, name='"><script>alert(1)</script>')
    assert b"<script>alert" not in answer.content


@pytest.mark.parametrize("name", ["x" * 10_000, "a\x00b", "é\u202e", ""])
def test_strange_names_get_an_answer(client, name):
    assert log_in(client, name=name).status_code == 401


def test_login_needs_its_form_token(alice):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    assert log_in(client).status_code == 403
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get("/login/").content.decode())[1]
    assert log_in(client, csrfmiddlewaretoken=token).status_code == 302


def test_a_persons_browser_is_let_in_by_following_the_link(client, alice):
    answer = client.get(path_of(alice), **PERSON)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert who(client) == str(alice.pk)
    assert AuditEntry.objects.get().message == "Logged in by a one-time link from 127.0.0.1."


@cases("headers", {
    "a link preview": {},
    "a prerender": {**PERSON, "HTTP_SEC_PURPOSE": "prefetch;prerender"},
    "an old prefetch": {**PERSON, "HTTP_PURPOSE": "prefetch"},
    "another site's link": {**PERSON, "HTTP_SEC_FETCH_SITE": "cross-site"},
    "a picture": {**PERSON, "HTTP_SEC_FETCH_MODE": "no-cors"},
    "a frame": {**PERSON, "HTTP_SEC_FETCH_DEST": "iframe"},
})  # fmt: skip
def test_whatever_only_looks_at_a_link_does_not_use_it_up(client, alice, headers):
    path = path_of(alice)
    answer = client.get(path, **headers)
    assert (answer.status_code, who(client)) == (200, None)
    assert b"Log in as alice" in answer.content
    assert LoginLink.objects.get().used is None
    assert client.post(path).status_code == 302
    assert who(client) == str(alice.pk)


def test_a_used_link_says_so_and_names_the_remedy(client, alice):
    path = path_of(alice)
    client.post(path)
    client.post("/logout/")
    for answer in (client.get(path), client.get(path, **PERSON), client.post(path)):
        assert answer.status_code == 404
        assert b"has been used" in answer.content
        assert b"make loginlink" in answer.content


def test_who_follows_his_own_link_twice_goes_on(client, alice):
    path = path_of(alice)
    client.get(path, **PERSON)
    assert client.get(path, **PERSON).headers["Location"] == "/"


def test_a_link_of_somebody_else_changes_the_user_and_the_session(client, alice):
    log_in(client)
    before = client.session.session_key
    bob = make_user("bob")
    client.post(path_of(bob))
    assert who(client) == str(bob.pk)
    assert client.session.session_key != before


def test_logout_is_by_post_only(client, alice):
    log_in(client)
    assert client.get("/logout/").status_code == 405
    assert who(client) is not None
    answer = client.post("/logout/")
    assert answer.headers["Location"] == "/login/"
    assert who(client) is None
    assert AuditEntry.objects.filter(verb="logout", actor="alice").count() == 1


def test_a_user_changes_his_password_and_other_sessions_end(client, alice, client_factory):
    log_in(client)
    other = client_factory()
    log_in(other)
    new = "a staple and a horse"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/password/", fields).headers["Location"] == "/"
    assert who(client) == str(alice.pk)
    assert who(other) is None
    assert User.objects.get().check_password(new)
    assert new not in str(list(AuditEntry.objects.values()))


def test_who_came_by_a_link_sets_his_first_password(client):
    user = make_user("alice")
    client.post(path_of(user))
    assert b"Set a password" in client.get("/password/").content
    fields = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    assert client.post("/password/", fields).status_code == 302
    assert User.objects.get().check_password(PASSWORD)


@cases("fields", {
    "wrong old password": ({"old_password": "wrong", "new_password1": "a staple and a horse", "new_password2": "a staple and a horse"}),
    "weak": {"old_password": PASSWORD, "new_password1": "12345678", "new_password2": "12345678"},
    "different": {"old_password": PASSWORD, "new_password1": "a staple and a horse", "new_password2": "another"},
    "nothing": {},
})  # fmt: skip
def test_a_password_that_will_not_do_is_explained_and_not_set(client, alice, fields):
    log_in(client)
    answer = client.post("/password/", fields)
    assert answer.status_code == 200
    assert b'class="error"' in answer.content
    assert User.objects.get().check_password(PASSWORD)


def test_the_password_page_asks_for_a_login_first(client):
    assert client.get("/password/").headers["Location"] == "/login/?next=/password/"


def test_a_deactivated_user_is_out_at_his_next_click(client, alice):
    log_in(client)
    User.objects.update(is_active=False)
    assert client.get("/password/").status_code == 302
