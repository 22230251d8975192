"""May somebody do this, and why: the answers behind `kubectl auth can-i`.

The decision is that of `cluster.access`, which every request passes; here it is put into words. Roles let a submitter
change what he created, which rules of Kubernetes cannot say: a question that names an object is answered for that
object, one that names none is answered no, with the reason. Only creating counts as one's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from cluster import access
from cluster.access import nodes
from cluster.access.authorizer import Actor
from cluster.access.roles import CLUSTER, EVERYWHERE, LETTER, METRICS, NAMESPACE, NAMESPACED, SOMEBODY, needed
from cluster.api import rights
from cluster.api.cluster_view import ClusterView
from kube import resources
from kube.errors import Forbidden
from kube.kinds.reviews import NonResourceRule, ResourceAttributes, ResourceRule, RulesReviewStatus
from kube.volcano import scheduler_configuration

VERBS = tuple(LETTER)
PATHS = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/metrics", "/openapi", "/openapi/*", "/readyz", "/version")  # fmt: skip


class Verdict(NamedTuple):
    """Whether, and why in a sentence."""

    allowed: bool
    reason: str


def judge(actor: Actor, attributes: ResourceAttributes) -> Verdict:
    """Say whether the actor may do what the attributes name."""
    if access.is_system(actor):
        return Verdict(True, f"The group {access.MASTERS} may do anything.")
    targets = list(_targets(attributes))
    if node := access.node_of(actor):
        if len(targets) == 1 and nodes.may(node, attributes.verb, targets[0], attributes.namespace, attributes.name):
            return Verdict(True, f"The node {node} is responsible for it.")
        # Neither is a node responsible for no object in particular.
        return Verdict(False, f"The node {node} is not responsible for what the question names.")
    if not targets:
        whole = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
        return Verdict(False, f"There is no resource {whole} here.")
    if len(targets) == 1 and attributes.verb != "*":
        verdict = _judge_one(actor, attributes, _named(attributes, targets[0]))
        return _judge_joining(actor, attributes, verdict) if targets[0] in rights.JOINING else verdict
    for target in targets:
        for verb in VERBS if attributes.verb == "*" else (attributes.verb,):
            namespace = _right_namespace(attributes, target)
            possible = verb in LETTER and needed(verb, target) is not None
            if possible and not access.allowed(actor, verb, target, namespace):
                return Verdict(False, f"Not all of it: {_missing(verb, target, namespace)}")
    return Verdict(True, _by_role(actor, _right_namespace(attributes, targets[0])))


def _named(attributes: ResourceAttributes, target: str) -> str:
    """Return the target of the right: writing the scheduler's ConfigMap takes another than others of its namespace."""
    kind = resources.CONFIGMAPS
    writes = target == kind.id and LETTER.get(attributes.verb) not in ("r", None)
    is_configuration = writes and scheduler_configuration.is_configuration(kind, attributes.namespace, attributes.name)
    return rights.SCHEDULER if is_configuration else target


def _judge_joining(actor: Actor, attributes: ResourceAttributes, verdict: Verdict) -> Verdict:
    """Return the verdict on exec, attach or port-forward, which needs more than the role where a pod is named."""
    try:
        if verdict.allowed and attributes.name:
            rights.check_joining(actor, attributes.namespace, attributes.name, ClusterView())
    except Forbidden as refusal:
        return Verdict(False, refusal.message)
    return verdict


def _judge_one(actor: Actor, attributes: ResourceAttributes, target: str) -> Verdict:
    namespace = _right_namespace(attributes, target)
    if access.allowed(actor, attributes.verb, target, namespace):
        return Verdict(True, _by_role(actor, namespace))
    if access.allowed(actor, attributes.verb, target, namespace, owner=actor.name):
        if attributes.verb == "create":
            return Verdict(True, f"For what {actor.name} created.")
        if not attributes.name:
            return Verdict(False, f"Only what {actor.name} created; ask for an object by its name.")
        resource = resources.by_id(target.partition("/")[0])
        if rights.owner_of_name(resource, namespace, attributes.name, ClusterView()) == actor.name:
            return Verdict(True, f"{actor.name} created it.")
        return Verdict(False, f"{actor.name} did not create it. {_missing(attributes.verb, target, namespace)}")
    return Verdict(False, _missing(attributes.verb, target, namespace))


def _targets(attributes: ResourceAttributes) -> Iterator[str]:
    """Yield the rows of the table that the question is about."""
    rows = {each: each for each in (*NAMESPACED, *CLUSTER, NAMESPACE)}
    rows |= {each.full_name: each.id for each in resources.served()}
    if attributes.verb == "impersonate":
        rows |= {each: each for each in SOMEBODY}
    suffix = f"/{attributes.subresource}" if attributes.subresource else ""
    if attributes.resource == "*":
        for each in sorted(rows):
            if "/" not in each and attributes.group in ("*", each.partition(".")[2]):
                yield f"{rows[each]}{suffix}"
        return
    whole = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    if attributes.group == "*":
        yield from sorted({rows[each] + suffix for each in rows if each.partition(".")[0] == attributes.resource})
    elif whole in rows:
        yield f"{rows[whole]}{suffix}"


def _right_namespace(attributes: ResourceAttributes, target: str) -> str:
    base = target.partition("/")[0]
    if base == NAMESPACE:
        return attributes.name or attributes.namespace
    return "" if base in CLUSTER else attributes.namespace


def _by_role(actor: Actor, namespace: str) -> str:
    held = access.grants(actor)
    role = held.role(namespace) if namespace else held.roles.get(EVERYWHERE) or held.highest()
    if role is None:
        return "Every authenticated user may."
    everywhere = not namespace or held.roles.get(EVERYWHERE) is role
    return f"{actor.name} is {role} {_where('' if everywhere and EVERYWHERE in held.roles else namespace)}."


def _missing(verb: str, target: str, namespace: str) -> str:
    role = needed(verb, target)
    if role is None:
        return "Nobody may do this by hand."
    return f"It takes the role {role} {_where(namespace)}."


def _where(namespace: str) -> str:
    return f"in {namespace}" if namespace else "in all namespaces"


def rules(actor: Actor, namespace: str) -> RulesReviewStatus:
    """Return all that the actor may do in a namespace and with what lies in none."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    own: dict[str, None] = {}
    for resource in resources.served():
        right_namespace = namespace if resource.namespaced or resource is resources.NAMESPACES else ""
        parts = [("", resource.verbs), *((f"/{part.name}", part.verbs) for part in resource.parts)]
        for part, verbs in parts:
            on_any, on_own = _allowed(actor, f"{resource.id}{part}", verbs, right_namespace)
            if on_any:
                grouped[resource.group, on_any].append(f"{resource.plural}{part}")
            if on_own:
                own[resource.id] = None
    may_scrape = access.allowed(actor, "get", METRICS, "")
    paths = [path for path in PATHS if may_scrape or path != f"/{METRICS}"]
    note = f"{actor.name} may also change what {actor.name} created: {', '.join(own)}" if own else ""
    return RulesReviewStatus(
        resource_rules=[
            ResourceRule(verbs=list(verbs), api_groups=[group], resources=names)
            for (group, verbs), names in grouped.items()
        ],
        non_resource_rules=[NonResourceRule(verbs=["get"], non_resource_urls=paths)],
        incomplete=bool(own),
        evaluation_error=note,
    )


def _allowed(
    actor: Actor, target: str, verbs: tuple[str, ...], namespace: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the verbs that are allowed on anybody's objects, and those on the actor's own only."""
    on_own = [verb for verb in verbs if access.allowed(actor, verb, target, namespace, owner=actor.name)]
    on_any = [verb for verb in on_own if verb == "create" or access.allowed(actor, verb, target, namespace)]
    return tuple(on_any), tuple(verb for verb in on_own if verb not in on_any)
