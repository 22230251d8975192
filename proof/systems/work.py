"""Jobs to submit in tests, and a person's way of submitting them: over HTTP, in a session."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from cluster.store import Change, Store
from kube.errors import NotFound
from kube.meta import Object
from kube.resources import EVENTS, JOBS, PODS
from proof.harness.waiting import until
from proof.systems.system import System

COMPLETED = (
    'data-phase="Completed"'  # as a page shows it; the bare word is in a living job's too, of what a button does
)
FINISHED = ("Completed", "Failed", "Aborted", "Terminated")
AWAY = (httpx.TransportError, httpx.TimeoutException)


def task(
    command: list[str],
    *,
    name: str = "main",
    replicas: int = 1,
    cpu: str = "50m",
    memory: str = "16Mi",
    annotations: Mapping[str, str] | None = None,
    sees: Path | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a task of one container, which finds a directory of this machine at its own path if it `sees` one.

    `fields` are the pod's, but for minAvailable and policies.
    """
    own: dict[str, Any] = {key: fields.pop(key) for key in ("minAvailable", "policies", "maxRetry") if key in fields}
    container: dict[str, Any] = {
        "name": "main",
        "image": "any",
        "command": command,
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    template: dict[str, Any] = {"spec": {"restartPolicy": "Never", "containers": [container], **fields}}
    if sees is not None:
        sees.mkdir(exist_ok=True)
        template["spec"]["volumes"] = [{"name": "seen", "hostPath": {"path": str(sees)}}]
        container["volumeMounts"] = [{"name": "seen", "mountPath": str(sees)}]
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return {"name": name, "replicas": replicas, "template": template, **own}


def shell(script: str, **fields: Any) -> dict[str, Any]:
    """Return a task that runs a shell script."""
    return task(["sh", "-c", script], **fields)


def held(file: Path, **fields: Any) -> dict[str, Any]:
    """Return a task that ends once there is such a file."""
    return shell(f"until [ -e {file} ]; do sleep 0.05; done", sees=file.parent, **fields)


def job(
    name: str, *tasks: Mapping[str, Any], namespace: str = "default", minimum: int | None = None, **spec: Any
) -> Object:
    """Return a job; without a minimum all its pods start together."""
    total = sum(each["replicas"] for each in tasks)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": total if minimum is None else minimum, "tasks": list(tasks), **spec},
    }


class Page(HTMLParser):
    """The addresses to which a page leads, and the fields of its forms as they are filled: "" is the one of the page itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.paths: set[str] = set()
        self.forms: dict[str, dict[str, str]] = {}
        self.form = self.area = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        has = dict(attributes)
        self.paths.update(
            urlsplit(address).path for each in ("href", "action", "formaction") if (address := has.get(each))
        )
        if tag == "form":
            self.form = urlsplit(has.get("action") or "").path
        name, fields = has.get("name") or "", self.forms.setdefault(self.form, {})
        if tag == "textarea":
            self.area, fields[name] = name, ""
        elif tag == "input" and name and (has.get("type") not in ("checkbox", "radio") or "checked" in has):
            fields[name] = has.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        self.area = "" if tag == "textarea" else self.area

    def handle_data(self, data: str) -> None:
        if self.area:
            self.forms[self.form][self.area] += data


class Person:
    """Somebody at a browser: pages, forms, and the buttons on them."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.client = system.client()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def get(self, path: str, **params: str) -> httpx.Response:
        """Return a page."""
        return self.client.get(path, params=params or None)

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form, as the page's own script does; redirects are not followed."""
        token = self.client.cookies[f"volcano_ui_csrf_{self.system.port}"]
        return self.client.post(path, data=fields, headers={"X-CSRFToken": token}, follow_redirects=False)

    def fill(self, path: str, **fields: str) -> httpx.Response:
        """Open a form, change fields of it and send it; once more where it shows first what would change."""
        answer = self.post(path, **Page(self.get(path).text).forms[""] | fields)
        return answer if answer.status_code != 200 else self.post(path, **Page(answer.text).forms[""])

    def submit(self, obj: str | Mapping[str, Any]) -> httpx.Response:
        """Submit a job, given as text or as an object; return the server's answer."""
        text = obj if isinstance(obj, str) else json.dumps(obj)
        return self.post("/jobs/new/", text=text, token=secrets.token_hex(8))

    def create(self, obj: str | Mapping[str, Any]) -> str:
        """Submit a job that must be accepted; return its name."""
        answer = self.submit(obj)
        assert answer.status_code == 302, problems(answer)
        found = re.fullmatch(r"/jobs/[^/]+/([^/]+)/", answer.headers["location"])
        assert found is not None, answer.headers["location"]
        return found[1]

    def insist(self, obj: Mapping[str, Any]) -> None:
        """Submit a job until the server answers; the same token makes it one job however often it is sent."""
        text, token = json.dumps(obj), secrets.token_hex(8)

        def sent() -> bool:
            try:
                answer = self.post("/jobs/new/", text=text, token=token)
            except AWAY:
                return False
            assert answer.status_code == 302 or answer.status_code >= 500, problems(answer)
            return answer.status_code == 302

        until(sent, what="an answer")


def problems(answer: httpx.Response) -> str:
    """Return what a refused submission's page says, shortly."""
    found = re.findall(r'<li data-kind="\w+">(.*?)</li>', answer.text, re.DOTALL)
    return f"{answer.status_code}: {found or answer.text[:500]}"


class Watcher:
    """Looks at the cluster through its store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def job(self, name: str, namespace: str = "default") -> Object | None:
        """Return a job, or None when it is gone."""
        try:
            return self.store.get(JOBS, namespace, name).object
        except NotFound:
            return None

    def state(self, name: str) -> Mapping[str, Any]:
        """Return a job's state: phase, reason, message."""
        return ((self.job(name) or {}).get("status") or {}).get("state") or {}

    def phase(self, name: str) -> str | None:
        """Return a job's phase."""
        return self.state(name).get("phase")

    def reaches(self, name: str, *phases: str) -> Object:
        """Wait until a job is in one of the phases; return the job."""

        def look() -> Object | None:
            found = self.job(name)
            return found if ((found or {}).get("status") or {}).get("state", {}).get("phase") in phases else None

        return until(look, what=lambda: f"{phases} ({name} is {self.state(name)}; {self.story(name)})")

    def pods(self, name: str) -> dict[str, Object]:
        """Return a job's pods by name."""
        owner = self.store.get(JOBS, "default", name).uid
        return {stored.name: stored.object for stored in self.store.find(PODS, owner=owner)}

    def story(self, name: str) -> list[tuple[str, str | None, str | None]]:
        """Return what the events say of a job and its pods, for a failing test's message."""
        found = [stored.object for stored in self.store.find(EVENTS, namespace="default")]
        about = [each for each in found if each["involvedObject"]["name"].startswith(name)]
        return [(each["involvedObject"]["name"], each.get("reason"), each.get("message")) for each in about]

    def everything(self) -> list[Change]:
        """Return the whole log."""
        changes, position = [], 0
        while more := self.store.changes(position, limit=5000):
            changes += more
            position = more[-1].revision
        return changes
