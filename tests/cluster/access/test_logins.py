from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from cluster.access import logins
from cluster.models import AuditEntry, LoginFailure, LoginLink
from kube.errors import NotFound, TooManyRequests
from tests.cluster.api.conftest import make_user

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000_000
MINUTE = 60_000


def token_of(link):
    return link.rstrip("/").rpartition("/")[2]


def test_a_link_holds_a_long_random_token_of_which_only_the_hash_is_kept():
    link = logins.login_link("http://host:1/", now=NOW)
    assert link.startswith("http://host:1/login/")
    assert len(token_of(link)) == 43
    assert token_of(link) not in str(LoginLink.objects.values())


def test_a_link_works_once():
    user = make_user("alice")
    token = token_of(logins.login_link("http://h", user, now=NOW))
    assert logins.check_link(token, now=NOW) == user
    assert logins.claim(token, "::1", now=NOW) == user
    with pytest.raises(NotFound, match=r"has been used.*make loginlink"):
        logins.claim(token, "::1", now=NOW)
    assert AuditEntry.objects.get().message == "Logged in by a one-time link from ::1."


def test_a_link_works_for_fifteen_minutes():
    token = token_of(logins.login_link("http://h", now=NOW))
    assert logins.check_link(token, now=NOW + 15 * MINUTE - 1)
    with pytest.raises(NotFound, match="older than 15 minutes"):
        logins.claim(token, "::1", now=NOW + 15 * MINUTE)


@pytest.mark.parametrize("token", ["", "x", "../..", "é\udc80", "a" * 5000], ids=ascii)
def test_a_token_that_nobody_gave_is_refused_with_the_remedy(token):
    with pytest.raises(NotFound, match="make up"):
        logins.claim(token, "::1", now=NOW)


def test_a_deactivated_user_cannot_use_a_link():
    token = token_of(logins.login_link("http://h", make_user("alice", is_active=False), now=NOW))
    with pytest.raises(NotFound, match="deactivated"):
        logins.claim(token, "::1", now=NOW)


def test_old_links_are_forgotten_when_new_ones_are_made():
    logins.login_link("http://h", now=NOW)
    logins.login_link("http://h", now=NOW + 31 * MINUTE)
    assert LoginLink.objects.count() == 1


def fail(name="alice", address="10.0.0.1", cookies=None, now=NOW):
    logins.attempt(name, address, cookies or {}, now=now).failed()


def test_the_sixth_failure_for_a_name_from_one_place_has_to_wait():
    for second in range(5):
        fail(now=NOW + second * 1000)
    with pytest.raises(TooManyRequests, match="in 15 minutes") as caught:
        fail(now=NOW + 5000)
    assert caught.value.retry_after_s == 15 * 60 - 5
    fail(now=NOW + 15 * MINUTE)


def test_upper_and_lower_case_are_one_name():
    for name in ("alice", "Alice", "ALICE", "aLice", "alIce"):
        fail(name)
    with pytest.raises(TooManyRequests):
        fail("alicE")


def test_failures_elsewhere_or_of_others_do_not_count():
    for _ in range(5):
        fail()
    fail(address="10.0.0.2")
    fail("bob")


def test_a_browser_in_which_the_user_logged_in_before_is_counted_by_itself():
    cookies = dict([logins.browser_cookie("alice")])
    for number in range(logins.MOST_FOR_ADDRESS):
        fail(f"name-{number}")
    with pytest.raises(TooManyRequests):
        fail()
    for _ in range(5):
        fail(cookies=cookies)
    with pytest.raises(TooManyRequests):
        fail(cookies=cookies)


def test_a_cookie_of_somebody_else_or_a_forged_one_is_worth_nothing():
    name, _ = logins.browser_cookie("alice")
    _, value = logins.browser_cookie("bob")
    for cookies in ({name: value}, {name: "forged"}, {name: ""}):
        assert logins.attempt("alice", "10.0.0.9", cookies, now=NOW).source == "10.0.0.9"


def test_success_forgets_the_failures_of_this_user_from_here():
    user = make_user("alice")
    for _ in range(4):
        fail()
    logins.attempt("alice", "10.0.0.1", {}, now=NOW).succeeded(user)
    assert LoginFailure.objects.count() == 0
    fail()


def test_what_was_typed_as_the_name_is_kept_only_if_it_is_one():
    make_user("alice")
    fail("alice")
    fail("hunter2-my-password")
    assert set(AuditEntry.objects.values_list("name", "outcome")) == {("alice", "denied"), ("(unknown name)", "denied")}


def test_the_command_prints_a_link(capsys):
    call_command("loginlink", "--url", "http://host:9")
    assert capsys.readouterr().out.startswith("http://host:9/login/")
    with pytest.raises(CommandError, match='no user "nobody"'):
        call_command("loginlink", "nobody")
    make_user("gone", is_active=False)
    with pytest.raises(CommandError, match="deactivated"):
        call_command("loginlink", "gone")
