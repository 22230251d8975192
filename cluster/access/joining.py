"""How a machine becomes a node over the API: an administrator's join token, and the token that it is exchanged for.

A join token is worth one machine, within its time: the first that comes with it gets a token of its own as the node
of a name, and from then on the join token is that machine's alone. So a command that somebody else reads later, in a
list of processes or a history, lets nobody in. The model is kubeadm's bootstrap token and the certificate that a
kubelet gets for it.

A machine is identified by the id of its agent's state directory. It may ask again with either token: a killed agent, an
answer that was lost and a restart come to the same as joining once.
"""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from cluster import access, clock, fingerprint
from cluster.access import Actor, tokens
from cluster.access.tokens import Issued
from cluster.models import Token
from cluster.store import sql, store
from kube import names
from kube.errors import Conflict, Forbidden, Invalid, Unauthorized, invalid
from kube.kinds.core import Node
from kube.resources import NAMESPACES, NODES

ANY = Token.ANY
MAX_S = 30 * tokens.DAY_S  # for which a join token waits for its machine
LIFE_S = tokens.MAX_S  # of a node's own token, from when its agent last joined
LONGEST_AGENT = 36
CLUSTER = "kube-system"  # whose uid identifies the cluster, as for other tools of Kubernetes


class Machine(NamedTuple):
    """What a machine says of itself: the name that it wants as a node, and the id of its agent's state directory."""

    name: str
    agent: str


class Joined(NamedTuple):
    """The name that a machine has as a node, its token ("" where it came with that), and which cluster this is."""

    name: str
    token: str
    cluster: str


def invite(actor: Actor, node: str, lifetime_s: int, *, now: int | None = None) -> Issued:
    """Make a join token for the node of a name, or for one new node (ANY); for who may make nodes."""
    access.require(actor, "create", NODES, "")
    if node != ANY and (problem := names.dns_subdomain(node)):
        raise Invalid.of("Token", "", [invalid("node", node, problem)])
    row = Token(node=node, joins=True, name="join")
    now = clock.milliseconds() if now is None else now
    return tokens.issued(actor, row, min(lifetime_s, MAX_S), now)


def command(server: str, authority: str, token: str, node: str = ANY) -> str:
    """Return what is typed on a machine that is to join at an address, whole; authority is the API's, in PEM."""
    authority = fingerprint.of(authority)
    words = [settings.MANAGE_COMMAND, "agent", "--server", server, "--token", token]
    words += ["--ca", authority] if authority else []
    words += ["--name", node] if node != ANY else []
    return " ".join(words)


def since(node: str) -> int | None:
    """Return since when a node has been joined over the API (epoch ms), None for one that has not."""
    rows = Token.objects.filter(node=node, joins=False, revoked=None)
    return rows.order_by("created").values_list("created", flat=True).first()


def join(actor: Actor, machine: Machine, *, now: int | None = None) -> Joined:
    """Take a machine on as a node, or back as the one that it is; the actor is who came with its token.

    Unauthorized for a token that has ended since the actor came in with it, Forbidden for one that is no machine's or
    another's, Conflict for a name that is taken.
    """
    now = clock.milliseconds() if now is None else now
    if not 0 < len(machine.agent) <= LONGEST_AGENT or not machine.agent.isprintable():
        raise Invalid.of("Join", "", [invalid("agent", machine.agent, f"1 to {LONGEST_AGENT} characters")])
    with transaction.atomic():
        sql.lock_head(store.using)  # of two machines with one token one is the first
        row = _row(actor, now)
        if row.agent and row.agent != machine.agent:
            raise Forbidden(
                f"This token was used by another machine, the node {row.node}. "
                "Make another one on the page “Nodes”; a state directory is one machine's and is not copied."
            )
        name = _name(row, machine)
        if not row.joins:
            Token.objects.filter(pk=row.pk).update(expires=now + LIFE_S * 1000)
            return Joined(name, "", cluster())
        own = Token.objects.filter(node=name, joins=False, revoked=None)
        if not own.filter(agent=machine.agent).exists():
            _check_free(name, is_named=row.node != ANY)
        # With the name goes all that another machine had it by, so that it does not come back while this one is silent.
        others = Token.objects.filter(node=name, revoked=None).exclude(agent__in=("", machine.agent))
        for had in (own, others):
            had.update(revoked=now)
        row.node, row.agent = name, machine.agent
        row.save(update_fields=["node", "agent"])
        new = Token(node=name, agent=machine.agent, name="node")
        return Joined(name, tokens.issued(actor, new, LIFE_S, now).secret, cluster())


def _row(actor: Actor, now: int) -> Token:
    """Return the token with which a machine has come, which may have been revoked after that."""
    is_machine = access.BOOTSTRAPPERS in actor.groups or access.node_of(actor)
    token = Token.objects.filter(pk=int(actor.uid)).first() if is_machine and not actor.real else None
    if token is None:
        raise Forbidden(
            f"A machine joins with a token that is made for it, and not as {actor.name}. Make one on the page “Nodes”."
        )
    if token.revoked is not None or token.expires <= now:
        raise Unauthorized("Unauthorized")
    return token


def _name(row: Token, machine: Machine) -> str:
    """Return the name that a machine gets; Conflict when the token is for another."""
    if row.node != ANY:
        if machine.name and machine.name != row.node:
            raise Conflict(
                f"This token is for the node {row.node}, and the machine wants to be {machine.name}. "
                f"Give --name {row.node}, or make a token for {machine.name}."
            )
        return row.node
    if problem := names.dns_subdomain(machine.name):
        raise Invalid.of("Join", "", [invalid("name", machine.name, problem)])
    return machine.name


def _check_free(name: str, *, is_named: bool) -> None:
    """Raise Conflict where the name is another machine's; one that is silent gives way to a token made for its name."""
    stored = store.get_or_none(NODES, "", name)
    if stored is None:
        return
    conditions = stored.read(Node).status.conditions
    is_ready = any(one.type == "Ready" and one.status == "True" for one in conditions)
    if is_ready:
        raise Conflict(
            f"The name {name} is taken by a node that is alive. Give another one with --name, or stop that node first."
        )
    if not is_named:
        raise Conflict(
            f"There is a node {name} already, though it is not ready, and this token is for a new one. "
            f"Give another name with --name, or make a token for the node {name}."
        )


def cluster() -> str:
    """Return the uid that identifies this cluster."""
    return store.get(NAMESPACES, "", CLUSTER).uid
