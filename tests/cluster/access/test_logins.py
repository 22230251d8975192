"""Logging in by a password, a link or not at all: the rules, and the pages."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client

from cluster.access import logins
from cluster.models import AuditEntry, LoginFailure, LoginLink
from kube.errors import NotFound, TooManyRequests
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000_000
MINUTE = 60_000
PASSWORD, OTHER = "correct horse battery", "a staple and a horse"
PERSON = {"HTTP_SEC_FETCH_MODE": "navigate", "HTTP_SEC_FETCH_DEST": "document", "HTTP_SEC_FETCH_SITE": "none"}


@pytest.fixture
def alice():
    return make_user("alice", PASSWORD)


def token_of(user=None, now=NOW):
    return logins.login_link("http://h", user, now=now).rstrip("/").rpartition("/")[2]


def claim(token, now=NOW):
    return logins.claim(token, "::1", now=now)


def test_a_link_works_once_for_fifteen_minutes(alice):
    link = logins.login_link("http://host:1/", alice, now=NOW)
    assert re.fullmatch(r"http://host:1/login/[\w-]{43}/", link)
    token = link[-44:-1]
    assert token not in str(LoginLink.objects.values()), "only its hash is kept"
    assert logins.check_link(token, now=NOW + 15 * MINUTE - 1) == alice
    with pytest.raises(NotFound, match="older than 15 minutes"):
        claim(token, NOW + 15 * MINUTE)
    assert claim(token, NOW + 15 * MINUTE - 1) == alice
    with pytest.raises(NotFound, match=r"has been used.*make loginlink"):
        claim(token)
    assert AuditEntry.objects.get().message == "Logged in by a one-time link from ::1."
    token_of(now=NOW + 31 * MINUTE)
    assert LoginLink.objects.count() == 1, "old ones are forgotten when new ones are made"


def test_a_token_that_nobody_gave_and_one_of_a_deactivated_user_are_refused_with_the_remedy(capsys):
    for token in ("", "x", "../..", "é\udc80", "a" * 5000):
        with pytest.raises(NotFound, match="make up"):
            claim(token)
    with pytest.raises(NotFound, match="deactivated"):
        claim(token_of(make_user("gone", is_active=False)))
    call_command("loginlink", "--url", "http://host:9")
    assert capsys.readouterr().out.startswith("http://host:9/login/")
    for name, why in (("nobody", 'no user "nobody"'), ("gone", "deactivated")):
        with pytest.raises(CommandError, match=why):
            call_command("loginlink", name)


def fail(name="alice", address="10.0.0.1", cookies=None, now=NOW):
    logins.attempt(name, address, cookies or {}, now=now).failed()


def test_the_sixth_failure_for_a_name_from_one_place_has_to_wait():
    for second, name in enumerate(("alice", "Alice", "ALICE", "aLice", "alIce")):
        fail(name, now=NOW + second * 1000)
    with pytest.raises(TooManyRequests, match="in 15 minutes") as caught:
        fail("alicE", now=NOW + 5000)
    assert caught.value.retry_after_s == 15 * 60 - 5
    fail(address="10.0.0.2")
    fail("bob")
    fail(now=NOW + 15 * MINUTE)


def test_a_browser_in_which_the_user_logged_in_before_is_counted_by_itself_and_no_other_cookie_counts():
    cookies = dict([logins.browser_cookie("alice")])
    for number in range(logins.MOST_FOR_ADDRESS):
        fail(f"name-{number}")
    with pytest.raises(TooManyRequests):
        fail()
    for _ in range(5):
        fail(cookies=cookies)
    with pytest.raises(TooManyRequests):
        fail(cookies=cookies)
    (name, _), (_, of_bob) = logins.browser_cookie("alice"), logins.browser_cookie("bob")
    for worthless in (of_bob, "forged", ""):
        assert logins.attempt("alice", "10.0.0.9", {name: worthless}, now=NOW).source == "10.0.0.9"


def test_success_forgets_the_failures_of_this_user_from_here_and_what_was_typed_is_kept_only_if_it_is_a_name(alice):
    for _ in range(4):
        fail()
    logins.attempt("alice", "10.0.0.1", {}, now=NOW).succeeded(alice)
    assert LoginFailure.objects.count() == 0
    fail("hunter2-my-password")
    denied = AuditEntry.objects.filter(outcome="denied").values_list("name", flat=True)
    assert set(denied) == {"alice", "(unknown name)"}


def path_of(user):
    return logins.login_link("http://testserver", user).removeprefix("http://testserver")


def who(client):
    return client.session.get("_auth_user_id")


def log_in(client, password=PASSWORD, name="alice", **extra):
    return client.post("/login/", {"username": name, "password": password, **extra})


def test_name_and_password_let_in_with_another_session_key_and_safe_cookies(client, alice):
    session = client.session
    session["theme"] = "dark"
    session.save()
    answer = log_in(client)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert who(client) == str(alice.pk)
    assert client.session.session_key != session.session_key
    assert not Session.objects.filter(session_key=session.session_key).exists()
    assert {(bool(cookie["httponly"]), cookie["samesite"]) for cookie in answer.cookies.values()} == {(True, "Lax")}
    assert any(name.startswith("volcano_ui_known_") for name in answer.cookies)


def test_a_wrong_password_is_answered_in_words_and_keeps_the_name_and_login_needs_its_form_token(alice):
    client = Client(enforce_csrf_checks=True)
    assert log_in(client).status_code == 403
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get("/login/").content.decode())[1]
    answer = log_in(client, "wrong", csrfmiddlewaretoken=token)
    assert answer.status_code == 401
    assert b"Name and password do not match" in answer.content
    assert b'value="alice"' in answer.content
    assert who(client) is None
    User.objects.update(is_active=False)
    assert log_in(client, csrfmiddlewaretoken=token).status_code == 401
    User.objects.update(is_active=True)
    assert log_in(client, csrfmiddlewaretoken=token).status_code == 302


def test_too_many_failures_are_told_when_to_come_back_but_not_where_the_user_was_in_before(client, alice):
    log_in(client)
    client.post("/logout/")
    other = Client()
    for _ in range(5):
        log_in(other, "wrong")
    answer = log_in(other)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 800
    assert b"one-time link" in answer.content
    assert log_in(client).status_code == 302


@cases("target, location", {
    "a page": ("/jobs/?phase=Running", "/jobs/?phase=Running"), "another site": ("https://evil.example/", "/"),
    "without a scheme": ("//evil.example", "/"), "a script": ("javascript:alert(1)", "/"), "nothing": ("", "/"),
})  # fmt: skip
def test_next_is_followed_only_inside_this_site(client, alice, target, location):
    assert log_in(client, next=target).headers["Location"] == location


def test_answers_are_kept_out_of_caches_and_show_strange_names_as_text(client):
    for path in ("/login/", "/login/abc/", "/password/"):
        answer = client.get(path)
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert "no-store" in answer.headers["Cache-Control"]
    for name in ("x" * 10_000, "a\x00b", "é\u202e", "", '"><script>alert(1)</script>'):
        answer = log_in(client, name=name)
        assert answer.status_code == 401
        assert b"<script>alert" not in answer.content


def test_a_persons_browser_is_let_in_by_following_the_link_and_who_follows_it_twice_goes_on(client, alice):
    path = path_of(alice)
    for _ in range(2):
        answer = client.get(path, **PERSON)
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
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert who(client) is None
    assert AuditEntry.objects.filter(verb="logout", actor="alice").count() == 1
    for answer in (client.get(path), client.get(path, **PERSON), client.post(path)):
        assert answer.status_code == 404
        assert b"has been used" in answer.content
        assert b"make loginlink" in answer.content


def test_a_link_of_somebody_else_changes_the_user_and_the_session_but_a_look_at_logout_does_not(client, alice):
    log_in(client)
    assert client.get("/logout/").status_code == 405
    assert who(client) == str(alice.pk)
    before = client.session.session_key
    bob = make_user("bob")
    client.post(path_of(bob))
    assert who(client) == str(bob.pk)
    assert client.session.session_key != before


def test_a_user_changes_his_password_and_other_sessions_end(client, alice):
    assert client.get("/password/").headers["Location"] == "/login/?next=/password/"
    other = Client()
    for each in (client, other):
        log_in(each)
    fields = {"old_password": PASSWORD, "new_password1": OTHER, "new_password2": OTHER}
    assert client.post("/password/", fields).headers["Location"] == "/"
    assert (who(client), who(other)) == (str(alice.pk), None)
    assert User.objects.get().check_password(OTHER)
    assert OTHER not in str(list(AuditEntry.objects.values()))
    assert client.get("/password/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/password/").status_code == 302


def test_who_came_by_a_link_sets_his_first_password_and_one_that_will_not_do_is_explained(client):
    client.post(path_of(make_user("alice")))
    assert b"Set a password" in client.get("/password/").content
    assert client.post("/password/", {"new_password1": PASSWORD, "new_password2": PASSWORD}).status_code == 302
    names = ("old_password", "new_password1", "new_password2")
    for fields in (("wrong", OTHER, OTHER), (PASSWORD, "12345678", "12345678"), (PASSWORD, OTHER, "another"), ()):
        answer = client.post("/password/", dict(zip(names, fields, strict=False)))
        assert answer.status_code == 200
        assert b'class="error"' in answer.content
        assert User.objects.get().check_password(PASSWORD)
