from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from cluster import access
from cluster.access import joining, tokens
from cluster.access.joining import ANY, Asked
from cluster.access.roles import Role
from cluster.models import RoleBinding, Token
from cluster.store import Create, store
from kube.errors import Conflict, Forbidden, Invalid, Unauthorized
from kube.resources import NAMESPACES, NODES
from tests import builders
from tests.tables import cases

pytestmark = pytest.mark.django_db
NOW, HOUR_MS, DAY_S = 1_800_000_000_000, 3_600_000, 86_400
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


def revoke(secret):
    tokens.revoke(access.CONSOLE, tokens.find(secret, now=NOW).pk, now=NOW)


@pytest.fixture
def issued():
    return invite()


def test_a_machine_gets_a_name_and_a_token_of_its_own(issued, cluster):
    joined = join(issued.secret)
    assert (joined.name, joined.cluster) == ("lab", cluster)
    assert actor(joined.token).name == "system:node:lab"
    assert access.node_of(actor(joined.token)) == "lab"
    assert (joining.since("lab"), joining.since("other")) == (NOW, None)


def test_with_a_join_token_nothing_can_be_done_but_joining_and_no_roles_come_from_groups(issued):
    everybody = Group.objects.create(name="system:authenticated")
    RoleBinding.objects.create(group=everybody, namespace="*", role=Role.ADMINISTRATOR)
    bootstrapper = actor(issued.secret)
    assert access.node_of(bootstrapper) == ""
    assert not access.allowed(bootstrapper, "get", NODES, "")
    for each in (issued.secret, join(issued.secret).token):
        assert access.grants(actor(each)).roles == {}


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
    revoke(issued.secret if which == "join" else own)
    assert actor(issued.secret) is actor(own) is None
    assert actor(other).name == "system:node:other"


@pytest.mark.parametrize("which", ["join", "own"])
def test_who_was_let_in_a_moment_before_his_token_ended_gets_no_other(issued, which):
    own = join(issued.secret).token
    row = tokens.find(issued.secret if which == "join" else own, now=NOW)
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
    assert invite(hours=999 * 24).expires == NOW + 30 * DAY_S * 1000
    chief, operator = person("chief", everywhere="administrator"), person("olga", everywhere="operator")
    row = joining.invite(chief, ANY, 3600, now=NOW).row
    with pytest.raises(Forbidden):
        joining.invite(operator, ANY, 3600)
    assert [row in tokens.visible(each, now=NOW) for each in (chief, operator)] == [True, False]


@cases("name, agent", {
    "no name": ("", HERE),
    "no node's name": ("Lab 2", HERE),
    "a path": ("../x", HERE),
    "no agent": ("lab", ""),
    "too long an agent": ("lab", "x" * 37),
})  # fmt: skip
def test_what_a_machine_says_of_itself_must_make_sense(issued, name, agent):
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
