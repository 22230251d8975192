"""Stories of requests: what somebody asks of an API server, a line a request, and what is seen of the answer."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

import yaml

from apiserver.app import ANONYMOUS
from cluster import access
from cluster.remote.http import paths
from cluster.store import Create, store
from kube import resources
from kube.patch import merge
from tests import builders
from tests.jobs.made import runner, settle
from tests.kube import samples
from tests.tables import at

JSON = "application/json"
BODIES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "yaml": "application/yaml",
    "text": "text/plain",
}
FORMS = {
    **{name: f"{JSON};as={name};v=v1;g=meta.k8s.io" for name in ("Table", "PartialObjectMetadata")},
    **{version: f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")},
    "yaml": "application/yaml",
    "html": "text/html",
}
HEADERS = {"warns": "warning", "type": "content-type", "cache": "cache-control", "vary": "vary", "etag": "etag"}
MAKE = {
    "pod": lambda name, containers=(), **fields: builders.pod(name, *containers, **fields),
    "node": builders.node,
    "queue": partial(builders.queue, state=""),
    "job": builders.job,
    "definition": lambda kind, **fields: merge(samples.ALL[kind], fields),
    "batch": lambda name, **fields: builders.of(
        resources.BATCH_JOBS, name, **{"template": builders.template(), **fields}
    ),
}


class Request(NamedTuple):
    method: str
    path: str
    body: object = None
    content_type: str = JSON
    headers: dict[str, str] = {}
    user: str = ""

    def content(self):
        return self.body if isinstance(self.body, str | bytes | None) else json.dumps(self.body)


def read(text, last=None):
    """Read a request: `vera: PATCH pods/p/status merge {status: {…}}`.

    Who asks stands before a colon, where it is not who may do everything. A path begins with a resource, of which the
    namespace is default, if not with a slash. Words behind it say of which type the body is (BODIES), `as` what the
    answer is to be (FORMS), and `with` a header. The body is YAML, and sent as JSON; one in quotes is sent as it stands.
    `pod p {…}` is what `builders.pod` makes of these fields (MAKE), and `last {…}` what was answered last with these
    changes.
    """
    head, body = re.fullmatch(r"""([^{\["']*)(.*)""", text, re.DOTALL).groups()
    user, _, head = head.rpartition(": ")
    method, path, *words = head.split()
    body, kind, headers = yaml.safe_load(body) if body else None, BODIES["merge"] if method == "PATCH" else JSON, {}
    while words:
        word = words.pop(0)
        if word in BODIES:
            kind = BODIES[word]
        elif word == "as":
            headers["Accept"] = FORMS[words.pop(0)]
        elif word == "with":
            name, _, value = words.pop(0).partition("=")
            headers[name] = unquote(value)
        elif word == "last":
            body = merge(last, body or {})
        else:
            body = MAKE[word](words.pop(0), **(body or {}))
    return Request(method, whole(path), body, kind, headers, user)


def whole(path):
    """Return a path that begins with a resource as one of the API."""
    name, rest = re.fullmatch(r"([^/?]*)(.*)", path).groups()
    return paths.collection(kind_of(name), "default") + rest if name else path


def kind_of(name):
    return next(each for each in resources.served() if each.full_name == name)


class Story:
    """Requests to a server, one after the other, as they stand in `tests/golden/apiserver`.

        vera is viewer in default
        STORE pods pod p {status: {phase: Running}}
        vera: GET pods → 200; items.*.metadata.name [p]; $uid items.0.metadata.uid
        vera: DELETE pods/p {preconditions: {uid: $uid}} → 403; says cannot delete

    `STORE` writes to the store, and `RUN` lets a controller do its work. Behind the arrow stand the code and parts of the
    answer by their paths, `*` for each of a list, null for what is not there; `$name path` calls a part by a name.
    `causes` are the fields of the causes; `warns` is in the warnings, or there is none; others of HEADERS go by their
    names; `body` is the whole body, `keys` are its keys, and `same` says that it is the one before. `says` ends a line:
    it is in the message, or in the body where that has none.
    """

    def __init__(self, api, person):
        self.api, self.person, self.actors, self.named, self.last = api, person, {}, {}, None

    def goes(self, part):
        wrong = []
        for _, given, expected in part.lines:
            given, expected = (re.sub(r"(?<!; )\$(\w+)", self._named, each) for each in (given, expected))
            if found := re.fullmatch(r"(\w+) is (.* in .*)", given):
                roles = (each.split(" in ") for each in found[2].split(", "))
                self.actors[found[1]] = self.person(found[1], **{namespace: role for role, namespace in roles})
            elif given.startswith("RUN "):
                settle(runner(given.removeprefix("RUN ")))
            elif given.startswith("STORE "):
                request = read(given)
                kind = next(kind for kind in resources.ALL if whole(kind.full_name) == request.path)
                store.write(Create(kind, request.body))
            else:
                assert expected, f"nothing is expected of {given}"
                answer = self.send(read(given, self.last))
                claims = [*self.wrong(answer, expected)]
                wrong += [f"{given}: {claims} of {answer.status_code} {answer.text[:1000]}"] if claims else []
        assert not wrong, "\n".join(wrong)

    def _named(self, found):
        return self.named.get(found[1], found[0])

    def send(self, request):
        """Send a request as its user: who was introduced, a node, or somebody who is known and may do nothing."""
        client, user = self.api, request.user
        if user:
            groups = ["system:nodes"] * user.startswith("system:node") + ["system:authenticated"] * (user != ANONYMOUS)
            client = client.as_(self.actors.get(user, access.Actor(user, tuple(groups))))
        return client.request(
            request.method, request.path, request.content(), request.content_type, headers=request.headers
        )

    def wrong(self, answer, expected):
        last, body = self.last, json_of(answer)
        if answer.status_code < 300 and body:
            self.last = body
        expected, _, words = expected.partition("says ")
        if words not in (body.get("message") or answer.text):
            yield f"says {body.get('message')}"
        for claim in filter(None, map(str.strip, expected.split("; "))):
            name, _, value = claim.rstrip(";").partition(" ")
            if name.startswith("$"):
                self.named[name[1:]] = str(seen(answer, value, "")[0]).strip('"')
            elif name == "same":
                yield from ([] if body == last else [f"not {last}"])
            else:
                found, wanted = seen(answer, name, value)
                yield from ([] if found == wanted else [f"{name} {found}"])


def json_of(answer):
    return answer.json() if answer.headers.get("content-type", "").startswith(JSON) and answer.content else {}


def seen(answer, name, value):
    if name.isdigit():
        return answer.status_code, int(name)
    if name in HEADERS:
        header = answer.headers.get(HEADERS[name], "")
        return header, header if name == "warns" and value and value in header else value
    if name in ("body", "keys"):
        return answer.text if name == "body" else sorted(json_of(answer)), yaml.safe_load(value)
    if name == "causes":
        return at(json_of(answer), "details.causes.*.field"), value.split()
    return at(json_of(answer), name), yaml.safe_load(value)
