from __future__ import annotations

import io
import logging

import pytest
import yaml
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from cluster import access
from cluster.access import accounts, tokens
from cluster.access.roles import Role
from cluster.access.tokens import DAY_S, Bound
from cluster.models import AuditEntry, Token
from cluster.store import Create, Delete, store
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from kube.resources import PODS, SECRETS, SERVICE_ACCOUNTS
from tests.cluster.api.conftest import make_user
from tests.tables import cases

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000_000
DAY_MS = DAY_S * 1000


def put(resource, name, namespace="team", **parts):
    return store.write(Create(resource, {"metadata": {"name": name, "namespace": namespace}, **parts}))[0]


@pytest.fixture
def alice():
    return make_user("alice")


@pytest.fixture
def robot():
    put(SERVICE_ACCOUNTS, "robot")
    return tokens.issue_for_account(access.CONSOLE, "team", "robot", "ci", DAY_S, now=NOW)


def of(user, name="laptop", lifetime_s=DAY_S, now=NOW):
    return tokens.issue(access.for_user(user), user, name, lifetime_s, now=now)


def test_only_the_hash_of_a_token_is_kept_and_nothing_says_it(alice, caplog):
    caplog.set_level(logging.DEBUG)
    issued = of(alice)
    assert len(issued.secret) == 47
    kept = f"{Token.objects.values()} {AuditEntry.objects.values()} {issued!r} {issued.row} {caplog.text}"
    assert issued.secret not in kept
    assert issued.secret[4:20] not in kept


def test_a_token_is_its_users_until_it_ends(alice):
    issued = of(alice)
    assert tokens.find(issued.secret, now=NOW).user == alice
    assert tokens.find(issued.secret, now=NOW + DAY_MS - 1)
    assert tokens.find(issued.secret, now=NOW + DAY_MS) is None


@pytest.mark.parametrize(
    "secret", ["", "x", "vui_", "vui_" + "a" * 43, "vui_" + "a" * 44, "vui_" + "é" * 43, "a" * 100_000, "vui_\0", "\udc80"], ids=ascii
)  # fmt: skip
def test_what_is_no_token_lets_nobody_in(alice, secret):
    of(alice)
    assert tokens.find(secret, now=NOW) is None


def test_a_part_of_a_token_lets_nobody_in(alice):
    secret = of(alice).secret
    for part in (secret[:-1], secret[1:], secret + "a", secret.upper(), f" {secret}", f"{secret}\n"):
        assert tokens.find(part, now=NOW) is None


def test_a_deactivated_or_deleted_users_tokens_are_dead(alice):
    first = of(alice)
    accounts.set_active(access.CONSOLE, alice, active=False)
    assert tokens.find(first.secret, now=NOW) is None
    accounts.set_active(access.CONSOLE, alice, active=True)
    assert tokens.find(first.secret, now=NOW)
    alice.delete()
    assert tokens.find(first.secret, now=NOW) is None


def test_a_service_account_that_was_made_again_is_another_one(robot):
    assert tokens.actor_of(tokens.find(robot.secret, now=NOW)).name == "system:serviceaccount:team:robot"
    store.write(Delete(SERVICE_ACCOUNTS, "team", "robot"))
    assert tokens.find(robot.secret, now=NOW) is None
    put(SERVICE_ACCOUNTS, "robot")
    assert tokens.find(robot.secret, now=NOW) is None


@pytest.mark.parametrize("resource", [PODS, SECRETS], ids=str)
def test_a_token_ends_with_what_it_is_bound_to(robot, resource):
    spec = {"spec": {"serviceAccountName": "robot", "containers": []}} if resource is PODS else {}
    put(resource, "thing", **spec)
    bound = Bound(resource.kind, "thing")
    issued = tokens.issue_for_account(access.CONSOLE, "team", "robot", "x", DAY_S, bound=bound, now=NOW)
    assert tokens.find(issued.secret, now=NOW)
    store.write(Delete(resource, "team", "thing"))
    put(resource, "thing", **spec)
    assert tokens.find(issued.secret, now=NOW) is None


@cases("bound, error, words", {
    "kind": (Bound("Node", "x"), BadRequest, "cannot bind token to object of type Node"),
    "absent": (Bound("Pod", "x"), NotFound, 'pods "x" not found'),
    "another's pod": (Bound("Pod", "other"), BadRequest, "different serviceaccount"),
    "uid": (Bound("Secret", "thing", "1"), Conflict, "does not match the UID in record"),
})  # fmt: skip
def test_what_a_token_cannot_be_bound_to(robot, bound, error, words):
    put(PODS, "other", spec={"containers": []})
    put(SECRETS, "thing")
    with pytest.raises(error, match=words):
        tokens.issue_for_account(access.CONSOLE, "team", "robot", "x", DAY_S, bound=bound, now=NOW)


def test_a_token_for_somebody_else_to_check_does_not_open_this_door(robot):
    issued = tokens.issue_for_account(access.CONSOLE, "team", "robot", "vault", DAY_S, audiences=["vault"], now=NOW)
    assert tokens.find(issued.secret, now=NOW) is None
    assert tokens.find(issued.secret, audience="vault", now=NOW)


@pytest.mark.parametrize(("asked", "given"), [(1, 600), (600, 600), (10**9, 365 * DAY_S)])
def test_a_token_lasts_from_ten_minutes_to_a_year(alice, asked, given):
    assert of(alice, lifetime_s=asked).expires == NOW + given * 1000


@pytest.mark.parametrize("name", ["", " ", "a" * 101, "two\nlines", "\0"], ids=ascii)
def test_a_token_needs_a_name_that_can_be_shown(alice, name):
    with pytest.raises(Invalid):
        of(alice, name=name)


def test_nobody_makes_a_token_of_another_user(alice, admin):
    with pytest.raises(Forbidden):
        tokens.issue(admin, alice, "x", DAY_S)


def test_a_user_holds_a_hundred_tokens_at_most(alice):
    for number in range(tokens.MOST_OF_USER):
        of(alice, name=str(number))
    with pytest.raises(Conflict, match="revoke"):
        of(alice)


def test_who_makes_an_accounts_token_holds_its_roles_himself(robot, person, admin):
    chief = person("chief", team="administrator")
    assert tokens.issue_for_account(chief, "team", "robot", "x", DAY_S, now=NOW)
    accounts.bind_role(admin, Role.VIEWER, "*", account="team/robot")
    with pytest.raises(Forbidden, match="it holds the role viewer in all namespaces, which you do not"):
        tokens.issue_for_account(chief, "team", "robot", "x", DAY_S, now=NOW)
    with pytest.raises(Forbidden, match="serviceaccounts/token"):
        tokens.issue_for_account(person("olga", team="operator"), "team", "robot", "x", DAY_S, now=NOW)


@pytest.mark.parametrize(
    ("who", "whose", "may"),
    [
        ("alice", "alice", True),
        ("bob", "alice", False),
        ("root", "alice", True),
        ("chief", "alice", False),
        ("alice", "robot", False),
        ("bob", "robot", False),
        ("chief", "robot", True),
        ("stranger", "robot", False),
        ("root", "robot", True),
    ],
)
def test_who_may_revoke_whose_token(alice, robot, person, who, whose, may):
    actors = {
        "alice": access.for_user(alice),
        "bob": person("bob", team="operator"),
        "chief": person("chief", team="administrator"),
        "stranger": person("stranger", other="administrator"),
        "root": person("root", everywhere="administrator"),
    }
    issued = of(alice) if whose == "alice" else robot
    assert (issued.row in tokens.visible(actors[who], now=NOW)) == (may and who != "alice")
    if may:
        tokens.revoke(actors[who], issued.row.pk, now=NOW)
        assert AuditEntry.objects.filter(actor=who, verb="revoke-token").exists()
    else:
        with pytest.raises(NotFound):
            tokens.revoke(actors[who], issued.row.pk, now=NOW)
    assert (tokens.find(issued.secret, now=NOW) is None) == may


def test_tokens_that_ended_are_forgotten_after_a_day(alice, robot):
    revoked = of(alice)
    tokens.revoke(access.for_user(alice), revoked.row.pk, now=NOW)
    of(alice, lifetime_s=90 * DAY_S)
    assert tokens.prune(NOW + DAY_MS) == 0
    assert tokens.prune(NOW + DAY_MS + 1) == 1
    assert tokens.prune(NOW + 2 * DAY_MS + 1) == 1
    assert Token.objects.count() == 1


def test_the_last_use_is_noted_once_in_ten_minutes(alice, django_assert_num_queries):
    row = of(alice).row
    tokens.note_use(row, now=NOW)
    row.refresh_from_db()
    with django_assert_num_queries(0):
        tokens.note_use(row, now=NOW + tokens.USED_MS - 1)
    tokens.note_use(row, now=NOW + tokens.USED_MS)
    assert Token.objects.get().used == NOW + tokens.USED_MS


def test_a_group_of_django_cannot_pass_for_the_systems(alice):
    alice.groups.add(Group.objects.create(name="system:masters"), Group.objects.create(name="team"))
    assert tokens.user_actor(alice).groups == ("team", "system:authenticated")


def test_a_role_of_a_service_account_counts_for_it_alone(robot, admin):
    accounts.bind_role(admin, Role.OPERATOR, "team", account="team/robot")
    assert access.allowed(tokens.account_actor("team", "robot"), "delete", PODS, "team")
    assert not access.allowed(tokens.account_actor("team", "robot"), "get", PODS, "other")
    assert not access.allowed(tokens.account_actor("other", "robot"), "get", PODS, "team")
    assert not access.allowed(tokens.account_actor("team", "default"), "get", PODS, "team")
    accounts.unbind_role(admin, "team", account="team/robot")
    assert not access.allowed(tokens.account_actor("team", "robot"), "get", PODS, "team")


def test_a_role_can_be_given_to_all_service_accounts_of_a_namespace(robot, admin):
    accounts.bind_role(admin, Role.VIEWER, "team", group="system:serviceaccounts:team")
    assert access.allowed(tokens.account_actor("team", "robot"), "get", PODS, "team")
    assert not access.allowed(tokens.account_actor("other", "robot"), "get", PODS, "team")


@pytest.mark.parametrize("group", ["system:masters", "system:authenticated"])
def test_groups_of_the_system_are_not_made(admin, group):
    with pytest.raises(Invalid, match="system"):
        accounts.bind_role(admin, Role.VIEWER, "*", group=group)


def kubeconfig(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("kubeconfig", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_kubeconfig_lets_the_first_administrator_in(caplog):
    caplog.set_level(logging.DEBUG)
    text, said = kubeconfig("--server", "https://there:1")
    config = yaml.safe_load(text)
    secret = config["users"][0]["user"]["token"]
    row = tokens.find(secret)
    assert row.user.is_superuser
    assert config["clusters"][0]["cluster"]["server"] == "https://there:1"
    assert secret not in said + caplog.text + str(AuditEntry.objects.values())


def test_the_kubeconfig_of_a_service_account_begins_in_its_namespace(robot):
    config = yaml.safe_load(kubeconfig("--service-account", "team/robot", "--expires", "12h")[0])
    assert tokens.find(config["users"][0]["user"]["token"]).account == "robot"
    assert config["contexts"][0]["context"]["namespace"] == "team"


def test_a_kubeconfig_in_a_file_is_its_owners_alone(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text("old")
    file.chmod(0o644)
    assert kubeconfig("--file", str(file))[0] == ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(file.read_text())["kind"] == "Config"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--user", "nobody"], 'no user "nobody"'),
        (["--expires", "2y"], "from 10m to 365d"),
        (["--expires", "1m"], "from 10m to 365d"),
        (["--service-account", "x"], "NAMESPACE/NAME"),
        (["--service-account", "team/x"], "kubectl create serviceaccount x -n team"),
        (["--server", "http://x"], "https://host:port"),
        (["--file", "/no/such/place"], "Choose another --file"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_the_remedy_and_leaves_no_token(arguments, words):
    with pytest.raises(CommandError, match=words):
        kubeconfig(*arguments)
    assert not Token.objects.exists()
