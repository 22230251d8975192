"""Tokens of people, of service accounts and of machines, and those with which machines join."""

from __future__ import annotations

import io
import logging

import pytest
import yaml
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from cluster import access
from cluster.access import accounts, joining, tokens
from cluster.access.joining import ANY, Asked
from cluster.access.roles import Role
from cluster.access.tokens import DAY_S, Bound
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, Delete, store
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthorized
from kube.resources import NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from tests import builders
from tests.blocks import blocks
from tests.cluster.api.conftest import make_user
from tests.cluster.texts import of_values
from tests.tables import cases

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000_000
DAY_MS = DAY_S * 1000
ROBOT = "system:serviceaccount:team:robot"


def put(resource, name, **parts):
    store.write(Create(resource, builders.of(resource, name, namespace="team", **parts)))


@pytest.fixture
def alice():
    return make_user("alice")


@pytest.fixture
def robot():
    put(SERVICE_ACCOUNTS, "robot")
    return of_robot("ci")


@pytest.fixture
def chief(person):
    return person("chief", team="administrator")


def of(user, name="laptop", lifetime_s=DAY_S):
    return tokens.issue(access.for_user(user), user, name, lifetime_s, now=NOW)


def of_robot(name="x", actor=access.CONSOLE, **options):
    return tokens.issue_for_account(actor, "team", "robot", name, DAY_S, now=NOW, **options)


def opens(issued, **options):
    return tokens.find(issued.secret, now=NOW, **options) is not None


def test_only_the_hash_of_a_token_is_kept_nothing_says_it_and_a_part_lets_nobody_in(alice, caplog):
    caplog.set_level(logging.DEBUG)
    issued = of(alice)
    secret = issued.secret
    assert len(secret) == 47
    kept = f"{Token.objects.values()} {AuditEntry.objects.values()} {issued!r} {issued.row} {caplog.text}"
    assert secret[4:20] not in kept
    parts = (secret[:-1], secret[1:], secret + "a", secret.upper(), f" {secret}", f"{secret}\n")
    wrong = (
        "", "x", "vui_", "vui_" + "a" * 43, "vui_" + "a" * 44, "vui_" + "é" * 43, "a" * 100_000, "vui_\0", "\udc80"
    )  # fmt: skip
    assert [none for none in (*parts, *wrong) if tokens.find(none, now=NOW)] == []


@cases("asked, given", {"a second": (1, 600), "ten minutes": (600, 600), "long": (10**9, 365 * DAY_S)})
def test_a_token_is_its_users_until_it_ends_from_ten_minutes_to_a_year_later(alice, asked, given):
    issued = of(alice, lifetime_s=asked)
    assert issued.expires == NOW + given * 1000
    assert tokens.find(issued.secret, now=issued.expires - 1).user == alice
    assert tokens.find(issued.secret, now=issued.expires) is None


def test_a_deactivated_or_deleted_users_tokens_are_dead(alice):
    issued, seen = of(alice), []
    for active in (False, True):
        accounts.set_active(access.CONSOLE, alice, active=active)
        seen.append(opens(issued))
    alice.delete()
    assert [*seen, opens(issued)] == [False, True, False]


@cases("kind, spec", {
    "its account": (SERVICE_ACCOUNTS, {}),
    "its pod": (PODS, {"serviceAccountName": "robot", "containers": []}),
    "its secret": (SECRETS, {}),
})  # fmt: skip
def test_a_token_ends_with_what_it_is_bound_to_though_that_is_made_again(robot, kind, spec):
    assert tokens.actor_of(tokens.find(robot.secret, now=NOW)).name == ROBOT
    name, issued = "robot", robot
    if kind is not SERVICE_ACCOUNTS:
        name = "thing"
        put(kind, name, **spec)
        issued = of_robot(bound=Bound(kind.kind, name))
    assert opens(issued)
    checked = of_robot("vault", audiences=["vault"]) if kind is SERVICE_ACCOUNTS else None
    assert checked is None or (opens(checked), opens(checked, audience="vault")) == (False, True)
    store.write(Delete(kind, "team", name))
    assert not opens(issued)
    put(kind, name, **spec)
    assert not opens(issued)


@cases("bound, error, words", {
    "kind": (Bound("Node", "x"), BadRequest, "cannot bind token to object of type Node"),
    "absent": (Bound("Pod", "x"), NotFound, 'pods "x" not found'),
    "another's pod": (Bound("Pod", "other"), BadRequest, "different serviceaccount"),
    "uid": (Bound("Secret", "thing", "1"), Conflict, "does not match the UID in record"),
})  # fmt: skip
def test_what_a_token_cannot_be_bound_to(robot, bound, error, words):
    put(PODS, "other", containers=[])
    put(SECRETS, "thing")
    with pytest.raises(error, match=words):
        of_robot(bound=bound)


def test_nobody_makes_a_token_of_another_user_without_a_name_or_more_than_a_hundred(alice, admin):
    for name in ("", " ", "a" * 101, "two\nlines", "\0"):
        with pytest.raises(Invalid):
            of(alice, name=name)
    with pytest.raises(Forbidden):
        tokens.issue(admin, alice, "x", DAY_S)
    for number in range(tokens.MOST_OF_USER):
        of(alice, name=str(number))
    with pytest.raises(Conflict, match="revoke"):
        of(alice)


def test_who_makes_an_accounts_token_holds_its_roles_himself(robot, person, admin, chief):
    assert of_robot(actor=chief)
    accounts.bind_role(admin, Role.VIEWER, "*", account="team/robot")
    with pytest.raises(Forbidden, match="it holds the role viewer in all namespaces, which you do not"):
        of_robot(actor=chief)
    with pytest.raises(Forbidden, match="serviceaccounts/token"):
        of_robot(actor=person("olga", team="operator"))


@cases("who, roles, of_alice, of_robot", {
    "she herself": ("alice", {}, True, False),
    "an operator": ("bob", {"team": "operator"}, False, False),
    "an administrator of the namespace": ("chief", {"team": "administrator"}, False, True),
    "an administrator of another": ("stranger", {"other": "administrator"}, False, False),
    "an administrator of everything": ("root", {"everywhere": "administrator"}, True, True),
})  # fmt: skip
def test_who_may_revoke_whose_token(alice, robot, person, who, roles, of_alice, of_robot):
    actor = person(who, **roles) if roles else access.for_user(alice)
    for issued, may in ((of(alice), of_alice), (robot, of_robot)):
        assert (issued.row in tokens.visible(actor, now=NOW)) == (may and who != "alice")
        if may:
            tokens.revoke(actor, issued.row.pk, now=NOW)
            assert AuditEntry.objects.filter(actor=who, verb="revoke-token").exists()
        else:
            with pytest.raises(NotFound):
                tokens.revoke(actor, issued.row.pk, now=NOW)
        assert opens(issued) != may


def test_the_last_use_is_noted_once_in_ten_minutes_and_tokens_that_ended_are_forgotten_after_a_day(
    alice, robot, django_assert_num_queries
):
    row = of(alice, lifetime_s=90 * DAY_S).row
    tokens.note_use(row, now=NOW)
    row.refresh_from_db()
    with django_assert_num_queries(0):
        tokens.note_use(row, now=NOW + tokens.USED_MS - 1)
    tokens.note_use(row, now=NOW + tokens.USED_MS)
    tokens.revoke(access.for_user(alice), of(alice).row.pk, now=NOW)
    assert [tokens.prune(NOW + after) for after in (DAY_MS, DAY_MS + 1, 2 * DAY_MS + 1)] == [0, 1, 1]
    assert Token.objects.get().used == NOW + tokens.USED_MS


@cases("bound, allowed", {
    "one account": ({"account": "team/robot"}, [True, False, False, False]),
    "all of a namespace": ({"group": "system:serviceaccounts:team"}, [True, False, False, True]),
})  # fmt: skip
def test_a_role_counts_for_the_service_accounts_to_which_it_is_given(robot, admin, bound, allowed):
    def found():
        asked = (
            ("team", "robot", "team"),
            ("team", "robot", "other"),
            ("other", "robot", "team"),
            ("team", "default", "team"),
        )
        return [access.allowed(tokens.account_actor(*who), "delete", PODS, where) for *who, where in asked]

    accounts.bind_role(admin, Role.OPERATOR, "team", **bound)
    assert found() == allowed
    accounts.unbind_role(admin, "team", **bound)
    assert found() == [False] * 4


def test_groups_of_the_system_are_not_made_and_none_of_django_passes_for_one(admin, alice):
    for group in ("system:masters", "system:authenticated"):
        with pytest.raises(Invalid, match="system"):
            accounts.bind_role(admin, Role.VIEWER, "*", group=group)
    alice.groups.add(Group.objects.create(name="system:masters"), Group.objects.create(name="team"))
    assert tokens.user_actor(alice).groups == ("team", "system:authenticated")


def kubeconfig(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("kubeconfig", *arguments, stdout=out, stderr=err)
    return yaml.safe_load(out.getvalue()), err.getvalue()


def test_the_kubeconfig_lets_in_the_first_administrator_or_a_service_account_and_a_file_is_its_owners_alone(
    robot, caplog, tmp_path
):
    caplog.set_level(logging.DEBUG)
    config, said = kubeconfig("--server", "https://there:1")
    secret = config["users"][0]["user"]["token"]
    assert tokens.find(secret).user.is_superuser
    assert config["clusters"][0]["cluster"]["server"] == "https://there:1"
    assert secret not in said + caplog.text + str(AuditEntry.objects.values())
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
def test_what_is_wrong_is_said_with_the_remedy_and_leaves_no_token(block, golden):
    golden(block, of_values(kubeconfig, CommandError))
    assert not Token.objects.exists()


# Machines that join.

HOUR_MS = 3_600_000
HERE, THERE = "agent-1", "agent-2"


@pytest.fixture(autouse=True)
def cluster(db):
    return store.write(Create(NAMESPACES, {"metadata": {"name": "kube-system"}}))[0].uid


def invite(node=ANY, hours=1):
    return joining.invite(access.CONSOLE, node, hours * 3600, now=NOW)


def join(secret, name="lab", agent=HERE, now=NOW):
    return joining.join(tokens.actor_of(tokens.find(secret, now=now)), Asked(name, agent), now=now)


def node(name, ready="True"):
    store.write(Create(NODES, builders.node(name, ready=ready)))


def actor(secret, now=NOW):
    row = tokens.find(secret, now=now)
    return None if row is None else tokens.actor_of(row)


@pytest.fixture
def issued():
    return invite()


def test_a_machine_gets_a_name_and_a_token_of_its_own_and_with_that_to_join_it_can_do_nothing_else(issued, cluster):
    everybody = Group.objects.create(name="system:authenticated")
    RoleBinding.objects.create(group=everybody, namespace="*", role=Role.ADMINISTRATOR)
    bootstrapper = actor(issued.secret)
    assert access.node_of(bootstrapper) == ""
    assert not access.allowed(bootstrapper, "get", NODES, "")
    joined = join(issued.secret)
    assert (joined.name, joined.cluster) == ("lab", cluster)
    assert actor(joined.token).name == "system:node:lab"
    assert access.node_of(actor(joined.token)) == "lab"
    assert (joining.since("lab"), joining.since("other")) == (NOW, None)
    for each in (issued.secret, joined.token):
        assert access.grants(actor(each)).roles == {}, "no roles come from groups"


def test_a_used_join_token_is_its_machines_alone_which_may_join_again(issued):
    first = join(issued.secret)
    for name in ("lab", "other"):
        with pytest.raises(Forbidden, match="another machine, the node lab"):
            join(issued.secret, name=name, agent=THERE)
    second = join(issued.secret)
    assert first.name == second.name
    assert actor(first.token) is None, "nobody heard it"
    assert actor(second.token).name == "system:node:lab"
    node("lab")
    assert join(issued.secret).name == "lab", "also when its node is alive"


def test_with_its_own_token_a_node_comes_back_and_that_lasts_another_year(issued):
    own = join(issued.secret).token
    later = NOW + 300 * 24 * HOUR_MS
    again = join(own, name="lab", now=later)
    assert (again.name, again.token) == ("lab", "")
    assert actor(own, now=NOW + 500 * 24 * HOUR_MS)
    with pytest.raises(Forbidden):
        join(own, agent=THERE, now=later)
    with pytest.raises(Conflict):
        join(own, name="other", now=later)


@cases("wanted, there, asked, words", {
    "a living node's name": (ANY, {"lab": "True"}, "lab", "alive"),
    "a living node's name, though it is meant": ("lab", {"lab": "True"}, "lab", "alive"),
    "a silent node's name": (ANY, {"lab": "Unknown"}, "lab", "though it is not ready"),
    "another name than the token's": ("lab", {}, "other", "--name lab"),
})  # fmt: skip
def test_names_that_are_taken_or_not_meant_are_refused(wanted, there, asked, words):
    for name, ready in there.items():
        node(name, ready)
    with pytest.raises(Conflict, match=words):
        join(invite(wanted).secret, name=asked)
    assert not Token.objects.filter(joins=False).exists()


def test_a_token_for_a_name_brings_a_node_back_on_a_machine_set_up_anew_and_the_old_one_cannot(issued):
    lost = join(issued.secret).token
    node("lab", "Unknown")
    found = join(invite("lab").secret, name="", agent=THERE)
    assert found.name == "lab"
    assert actor(lost) is actor(issued.secret) is None
    assert actor(found.token).name == "system:node:lab"
    with pytest.raises(Unauthorized):
        joining.join(tokens.actor_of(issued.row), Asked("lab", HERE), now=NOW)


@pytest.mark.parametrize("which", ["join", "own"])
def test_with_one_of_a_machines_tokens_both_are_revoked_and_no_other_machines(issued, which):
    own = join(issued.secret).token
    other = join(invite().secret, name="other", agent=THERE).token
    tokens.revoke(access.CONSOLE, tokens.find(issued.secret if which == "join" else own, now=NOW).pk, now=NOW)
    assert actor(issued.secret) is actor(own) is None
    assert actor(other).name == "system:node:other"


@pytest.mark.parametrize("which", ["join", "own"])
def test_who_was_let_in_a_moment_before_his_token_ended_gets_no_other(issued, which):
    row = tokens.find(join(issued.secret).token if which == "own" else issued.secret, now=NOW)
    came_in = tokens.actor_of(row)
    with pytest.raises(Unauthorized):
        joining.join(came_in, Asked("lab", HERE), now=row.expires)
    tokens.revoke(access.CONSOLE, row.pk, now=NOW)
    with pytest.raises(Unauthorized):
        joining.join(came_in, Asked("lab", HERE), now=NOW)
    assert not Token.objects.filter(revoked=None).exists()


def test_only_who_may_make_nodes_invites_and_revokes_and_a_join_token_waits_only_so_long(issued, person):
    assert actor(issued.secret, now=NOW + HOUR_MS - 1)
    assert actor(issued.secret, now=NOW + HOUR_MS) is None
    assert invite(hours=999 * 24).expires == NOW + 30 * DAY_MS
    chief, operator = person("chief", everywhere="administrator"), person("olga", everywhere="operator")
    row = joining.invite(chief, ANY, 3600, now=NOW).row
    with pytest.raises(Forbidden):
        joining.invite(operator, ANY, 3600)
    assert [row in tokens.visible(each, now=NOW) for each in (chief, operator)] == [True, False]


def test_what_a_machine_says_of_itself_must_make_sense(issued):
    for name, agent in (("", HERE), ("Lab 2", HERE), ("../x", HERE), ("lab", ""), ("lab", "x" * 37)):
        with pytest.raises(Invalid):
            join(issued.secret, name=name, agent=agent)


def test_nobody_joins_in_place_of_a_machine(issued):
    for someone in (access.SYSTEM, access.Actor("alice", ("system:authenticated",), user_id=1)):
        with pytest.raises(Forbidden, match="joins with a token"):
            joining.join(someone, Asked("lab", HERE))
    row = tokens.find(join(issued.secret).token, now=NOW)
    as_it = access.Actor("system:node:lab", ("system:nodes",), uid=str(row.pk), real="admin")
    with pytest.raises(Forbidden):
        joining.join(as_it, Asked("lab", HERE))
