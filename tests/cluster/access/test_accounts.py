"""Accounts, their roles, tokens and logins, and machines that join: the stories of people.py, and what they do not tell."""

import contextlib
import io
import logging
import re

import pytest
import yaml
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from cluster import access, claims
from cluster.access import accounts, joining, logins, tokens
from cluster.access.accounts import Binding
from cluster.access.joining import ANY, Machine
from cluster.access.roles import Role
from cluster.access.tokens import DAY_S
from cluster.models import AuditEntry, LoginFailure, LoginLink, RoleBinding, Token
from cluster.store import Create, store
from kube.errors import Conflict, Forbidden, Invalid, NotFound, TooManyRequests, Unauthorized
from kube.resources import NAMESPACES, SERVICE_ACCOUNTS
from tests import builders
from tests.blocks import blocks
from tests.cluster.access.people import People
from tests.cluster.api.conftest import make_user
from tests.cluster.objects import of_values

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000_000
DAY_MS = DAY_S * 1000
PASSWORD = "correct horse battery"


@pytest.fixture
def people(moved_clock, settings, admin):
    moved_clock.us = NOW * 1000
    return People(moved_clock, settings)


@pytest.fixture
def alice(db):
    return make_user("alice", PASSWORD)


@blocks("people", "logins", folder="cluster")
def test_what_people_do_to_accounts_roles_tokens_and_logins(block, golden, people):
    golden(block, people.tell)
    assert not re.search("battery|horse", str(list(AuditEntry.objects.values())))


@blocks("joining", folder="cluster")
def test_machines_that_join(block, golden, people):
    """No roles come to them from groups."""
    store.write(Create(NAMESPACES, builders.namespace("kube-system")))
    everybody = Group.objects.create(name="system:authenticated")
    RoleBinding.objects.create(group=everybody, namespace="*", role=Role.ADMINISTRATOR)
    golden(block, people.tell)


# Accounts.


def refused(admin, name, password):
    with pytest.raises(Invalid) as caught:
        accounts.create_user(admin, name, password=password)
    assert not User.objects.filter(username=name).exists()
    return [str(cause) for cause in caught.value.causes]


@blocks("accounts", folder="cluster")
def test_an_account_with_bad_values_is_refused_and_a_claim_that_cannot_be_used_is_named(block, golden, admin):
    functions = {"accounts": lambda *given: refused(admin, *given), "claims": lambda claimed: read(**claimed)}
    golden(block, of_values(functions[block.title], claims.ClaimError))


def test_the_first_administrator_is_made_once_and_gets_another_name_where_his_is_taken(db):
    assert accounts.ensure_administrator() == accounts.ensure_administrator()
    User.objects.update(is_superuser=False)
    assert accounts.ensure_administrator().username == "admin-2"


def test_the_list_of_accounts_costs_five_queries(admin, django_assert_num_queries):
    for number in range(5):
        accounts.bind_role(admin, Role.VIEWER, "a", user=make_user(f"user-{number}", group="team"))
    tokens.issue(access.CONSOLE, User.objects.get(username="user-0"), "laptop", DAY_S)
    with django_assert_num_queries(5):
        found = accounts.users()
    assert [(a.name, a.groups, a.tokens) for a in found][1:3] == [("user-0", ("team",), 1), ("user-1", ("team",), 0)]
    assert found[1].bindings == (Binding("user-0", "", "a", Role.VIEWER),)


def test_the_administrators_group_is_appointed_at_the_start_once(settings, capsys):
    for group, expected in (("", None), ("staff", "Made administrators/staff.\n"), ("staff", "Everything is there.\n")):
        settings.OIDC_ADMIN_GROUP = group
        call_command("bootstrap")
        written = capsys.readouterr().out
        assert expected in (None, written)
        assert accounts.role_bindings("*") == ([Binding("", "staff", "*", Role.ADMINISTRATOR)] if group else [])


CLAIMS = {"iss": "https://p", "sub": "1", "preferred_username": "alice"}
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.lists(st.text(max_size=200) | st.none())


def read(**claimed):
    return claims.person({**CLAIMS, **claimed}, name_claim="preferred_username", groups_claim="groups")


def test_the_names_of_the_claims_are_chosen():
    found = claims.person({**CLAIMS, "email": "a@b", "roles": ["x"]}, name_claim="email", groups_claim="roles")
    assert (found.name, found.groups) == ("a@b", ("x",))


@given(st.dictionaries(st.sampled_from(["sub", "preferred_username", "groups"]), VALUES))
def test_whatever_is_sent_gives_a_person_whom_accounts_can_take_or_a_sentence(claimed):
    with contextlib.suppress(claims.ClaimError):
        found = read(**claimed)
        assert found.name.strip() == found.name != ""
        assert 0 < len(found.subject) <= 255
        assert all(0 < len(each) <= 150 and each.isprintable() for each in found.groups)
        assert not any(each.startswith("system:") for each in found.groups)
        assert list(found.groups) == sorted(set(found.groups))


# Tokens.


def test_only_the_hash_of_a_token_is_kept_nothing_says_it_and_a_part_lets_nobody_in(alice, caplog):
    caplog.set_level(logging.DEBUG)
    issued = tokens.issue(access.CONSOLE, alice, "laptop", DAY_S)
    secret = issued.secret
    assert len(secret) == 47
    text = f"{Token.objects.values()} {AuditEntry.objects.values()} {issued!r} {issued.row} {caplog.text}"
    assert secret[4:20] not in text
    parts = (secret[:-1], secret[1:], secret + "a", secret.upper(), f" {secret}", f"{secret}\n")
    wrong = (
        "", "x", "vui_", "vui_" + "a" * 43, "vui_" + "a" * 44, "vui_" + "é" * 43, "a" * 100_000, "vui_\0", "\udc80"
    )  # fmt: skip
    assert [none for none in (*parts, *wrong) if tokens.find(none)] == []


def test_a_user_has_a_hundred_tokens_at_most_and_no_group_of_django_passes_for_one_of_the_system(alice):
    for _ in range(tokens.MAX_OF_USER):
        tokens.issue(access.CONSOLE, alice, "laptop", DAY_S)
    with pytest.raises(Conflict, match="revoke"):
        tokens.issue(access.CONSOLE, alice, "laptop", DAY_S)
    alice.groups.add(Group.objects.create(name="system:masters"), Group.objects.create(name="team"))
    assert tokens.user_actor(alice).groups == ("team", "system:authenticated")


def test_the_last_use_is_noted_once_in_ten_minutes_and_tokens_that_ended_are_forgotten_after_a_day(
    alice, django_assert_num_queries
):
    lifetimes = (90 * DAY_S, 90 * DAY_S, DAY_S)
    row, revoked, _ = (tokens.issue(access.CONSOLE, alice, "laptop", each, now=NOW).row for each in lifetimes)
    tokens.note_use(row, now=NOW)
    row.refresh_from_db()
    with django_assert_num_queries(0):
        tokens.note_use(row, now=NOW + tokens.USED_MS - 1)
    tokens.note_use(row, now=NOW + tokens.USED_MS)
    tokens.revoke(access.for_user(alice), revoked.pk, now=NOW)
    assert [tokens.prune(NOW + after) for after in (DAY_MS, DAY_MS + 1, 2 * DAY_MS + 1)] == [0, 1, 1]
    assert Token.objects.get().used == NOW + tokens.USED_MS


def kubeconfig(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("kubeconfig", *arguments, stdout=out, stderr=err)
    return yaml.safe_load(out.getvalue()), err.getvalue()


@pytest.fixture
def installed(db):
    store.write(Create(NAMESPACES, builders.namespace("kube-system")))


def test_the_kubeconfig_lets_in_the_first_administrator_or_a_service_account_and_a_file_is_its_owners_alone(
    installed, caplog, tmp_path
):
    caplog.set_level(logging.DEBUG)
    config, stderr = kubeconfig("--server", "https://there:1")
    secret = config["users"][0]["user"]["token"]
    assert tokens.find(secret).user.is_superuser
    assert config["clusters"][0]["cluster"]["server"] == "https://there:1"
    assert secret not in stderr + caplog.text + str(AuditEntry.objects.values())
    store.write(Create(SERVICE_ACCOUNTS, builders.of(SERVICE_ACCOUNTS, "robot", namespace="team")))
    config, _ = kubeconfig("--service-account", "team/robot", "--expires", "12h")
    assert tokens.find(config["users"][0]["user"]["token"]).account == "robot"
    assert config["contexts"][0]["context"]["namespace"] == "team"
    file = tmp_path / "kubeconfig"
    file.write_text("old")
    file.chmod(0o644)
    assert kubeconfig("--file", str(file))[0] is None
    assert file.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(file.read_text())["kind"] == "Config"


@blocks("kubeconfigs", folder="cluster")
def test_what_is_wrong_is_said_with_the_remedy_and_leaves_no_token(block, golden, installed):
    golden(block, of_values(kubeconfig, CommandError))
    assert not Token.objects.exists()


@pytest.mark.parametrize("which", ["join", "own"])
def test_who_was_let_in_a_moment_before_his_token_ended_gets_no_other(installed, which):
    def join(came_in, now):
        return joining.join(came_in, Machine("lab", "agent-1"), now=now)

    row = joining.invite(access.CONSOLE, ANY, 3600, now=NOW).row
    if which == "own":
        row = tokens.find(join(tokens.actor_of(row), NOW).token, now=NOW)
    came_in = tokens.actor_of(row)
    with pytest.raises(Unauthorized):
        join(came_in, row.expires)
    if which == "own":
        with pytest.raises(Forbidden, match="joins with a token"):
            join(access.Actor(came_in.name, came_in.groups, uid=came_in.uid, real="admin"), NOW)
    tokens.revoke(access.CONSOLE, row.pk, now=NOW)
    with pytest.raises(Unauthorized):
        join(came_in, NOW)
    assert not Token.objects.filter(revoked=None).exists()


# Logging in.


def test_of_a_link_only_the_hash_is_kept_and_old_ones_are_forgotten(alice, capsys):
    link = logins.login_link("http://host:1/", alice, now=NOW)
    assert re.fullmatch(r"http://host:1/login/[\w-]{43}/", link)
    assert link[-44:-1] not in str(LoginLink.objects.values())
    for token in ("", "x", "../..", "é\udc80", "a" * 5000):
        with pytest.raises(NotFound, match="make up"):
            logins.claim(token, "::1")
    logins.login_link("http://host:1/", alice, now=NOW + 31 * 60_000)
    assert LoginLink.objects.count() == 1
    call_command("loginlink", "--url", "http://host:9")
    assert capsys.readouterr().out.startswith("http://host:9/login/")
    make_user("gone", is_active=False)
    for name, why in (("nobody", 'no user "nobody"'), ("gone", "deactivated")):
        with pytest.raises(CommandError, match=why):
            call_command("loginlink", name)


def test_a_browser_in_which_the_user_logged_in_before_is_counted_by_itself_and_no_other_cookie_counts(db):
    def fail(name="alice", cookies=None):
        logins.attempt(name, "10.0.0.1", cookies or {}).failed()

    cookies = dict([logins.browser_cookie("alice")])
    for number in range(logins.MAX_FOR_ADDRESS):
        fail(f"name-{number}")
    with pytest.raises(TooManyRequests):
        fail()
    for _ in range(5):
        fail(cookies=cookies)
    with pytest.raises(TooManyRequests):
        fail(cookies=cookies)
    assert LoginFailure.objects.filter(name="alice").count() == 5
    (name, _), (_, of_bob) = logins.browser_cookie("alice"), logins.browser_cookie("bob")
    for worthless in (of_bob, "forged", ""):
        assert logins.attempt("alice", "10.0.0.9", {name: worthless}).source == "10.0.0.9"


def test_name_and_password_let_in_with_the_forms_token_another_session_key_and_safe_cookies(alice):
    client, wanted = Client(enforce_csrf_checks=True), {"username": "alice", "password": PASSWORD}
    session = client.session
    session["theme"] = "dark"
    session.save()
    assert client.post("/login/", wanted).status_code == 403
    for path in ("/login/", "/login/abc/", "/password/"):
        answer = client.get(path)
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert "no-store" in answer.headers["Cache-Control"]
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get("/login/").content.decode())[1]
    answer = client.post("/login/", {**wanted, "csrfmiddlewaretoken": token})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert client.session.session_key != session.session_key
    assert not Session.objects.filter(session_key=session.session_key).exists()
    assert {(bool(cookie["httponly"]), cookie["samesite"]) for cookie in answer.cookies.values()} == {(True, "Lax")}
    assert any(name.startswith("volcano_ui_known_") for name in answer.cookies)
