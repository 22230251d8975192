"""A server that answers self subject reviews as API servers do, over HTTP, by rules that a test grants."""

from __future__ import annotations

import json
from contextlib import contextmanager

from cluster import access
from cluster.remote.access_rules import Question, read
from cluster.remote.authorizer import ClusterAuthorizer
from tests.cluster.remote.servers import Handler, Server, connected

EVERYBODY = "system:authenticated"
PATH = "/apis/authorization.k8s.io/v1/"


def rule(verbs, *resources):
    """A rule about resources, each by its id, all of one group."""
    plurals, groups = set(), set()
    for each in resources:
        base, slash, part = each.partition("/")
        plural, _, group = base.partition(".")
        plurals.add(f"{plural}{slash}{part}")
        groups.add(group)
    return {"verbs": verbs.split(), "apiGroups": sorted(groups), "resources": sorted(plurals)}


class Grants:
    """Who holds which rules where; "" stands for everywhere. Of some nobody can tell all rules at once."""

    def __init__(self):
        self.held = {}  # (user or group, namespace) → rules
        self.is_incomplete = False
        self.asked = 0

    def give(self, who, namespace, *rules):
        self.held[who, namespace] = [*self.held.get((who, namespace), ()), *rules]

    def take(self, who, namespace):
        del self.held[who, namespace]

    def rules(self, people, namespace):
        found = [self.held.get((who, place), ()) for who in people for place in {"", namespace}]
        return [one for rules in found for one in rules]

    def all_rules(self, people, namespace):
        """What a rules review answers: of an authorizer that cannot tell rules, none."""
        self.asked += 1
        rules = [] if self.is_incomplete else self.rules(people, namespace)
        return {"status": {"resourceRules": rules, "nonResourceRules": [], "incomplete": self.is_incomplete}}

    def allows(self, people, question):
        """What an access review answers."""
        self.asked += 1
        return read({"status": {"resourceRules": self.rules(people, question.namespace)}}).allow(question)


class ReviewServer(Server):
    """Its `grants` decide. `refused` is (code, message) of what it answers instead, `heard` who was asked about."""

    def __init__(self):
        super().__init__(ReviewHandler)
        self.grants, self.refused, self.heard = Grants(), None, []


class ReviewHandler(Handler):
    def do_POST(self):  # noqa: N802
        body = json.loads(self.body())
        user, groups = self.headers["Impersonate-User"], self.headers.get_all("Impersonate-Group") or []
        self.server.heard.append((user, groups))
        if self.server.refused:
            self.refuse(*self.server.refused)
        else:
            self.say(201, {"status": self.answer([user, *groups, EVERYBODY], body["spec"])})

    def answer(self, people, spec):
        if self.path == f"{PATH}selfsubjectrulesreviews":
            assert spec["namespace"], "no namespace on request"
            return self.server.grants.all_rules(people, spec["namespace"])["status"]
        assert self.path == f"{PATH}selfsubjectaccessreviews"
        about = spec["resourceAttributes"]
        kind = f"{about['resource']}.{about['group']}" if about["group"] else about["resource"]
        part = f"/{about['subresource']}" if about["subresource"] else ""
        question = Question(about["verb"], f"{kind}{part}", about["namespace"], about["name"])
        return {"allowed": self.server.grants.allows(people, question)}


@contextmanager
def deciding(tmp_path, settings, clock):
    """Have a server decide who may do what, by the time of a clock."""
    settings.IMPERSONATE = True
    with connected(ReviewServer(), tmp_path, settings) as running:
        access.delegate(ClusterAuthorizer())
        running.clock = clock
        yield running
        access.delegate(None)
