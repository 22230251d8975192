"""Scheduling tried as people do: everything is written and read through the Kubernetes API, pods are simulated by the clock.

A `Drill` is what one scenario has: a namespace, node labels and a configuration of the scheduler that are gone after it.
"""

import itertools
import logging
import ssl
from collections import Counter
from urllib.parse import quote

import httpx
import yaml

from cluster.remote.http import paths
from jobs.rules.remedies import REASONS
from kube.resources import CONFIGMAPS, DISRUPTION_BUDGETS, JOBS, NAMESPACES, NODES, PODS
from kube.volcano.scheduler_configuration import KEY, NAME, NAMESPACE
from proof.harness.waiting import HANG_S, until
from proof.systems.work import job, task
from tests.builders import config_map, of

MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
SIMULATED = {"ui.volcano.sh/simulated": "true"}
LOOK_S = 0.1
CONFIGURATION = paths.one(CONFIGMAPS, NAMESPACE, NAME)
_numbers = itertools.count(1)


def client(system, folder):
    """The Kubernetes API as the administrator's kubeconfig opens it."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it says each of thousands of requests
    text = system.kubeconfig(folder / "kubeconfig").read_text()
    headers = {"Authorization": f"Bearer {yaml.safe_load(text)['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cafile=str(system.ca))
    return httpx.Client(base_url=system.api, headers=headers, verify=context, timeout=HANG_S)


def pods(count=1, cpu="1", seconds=3600, *, name="main", on=None, notes=None, **fields):
    """Return a task of simulated pods; `on` are labels of the nodes that they select."""
    annotations = {"ui.volcano.sh/duration-seconds": str(seconds), **(notes or {})}
    selector = {**SIMULATED, **(on or {})}
    return task(["true"], name=name, replicas=count, cpu=cpu, annotations=annotations, nodeSelector=selector, **fields)


class Drill:
    """One scenario; use it as a context manager."""

    def __init__(self, api):
        self.api, self.namespace = api, f"drill-{next(_numbers)}"
        self._jobs, self._pods = (paths.collection(kind, self.namespace) for kind in (JOBS, PODS))
        self._labels = {}
        self.is_configured = False

    def __enter__(self):
        self.create(NAMESPACES, self.namespace)
        return self

    def __exit__(self, *_):
        """Leave nodes and scheduler as they were, and nothing that runs."""
        self.check_reasons()
        self._ask("DELETE", self._jobs)
        self._until(lambda: not self.jobs(), "the end of the jobs")
        # Which go before their pods do, and a pod that is still there has its part of a node.
        self._until(lambda: not self._ask("GET", self._pods)["items"], "the end of their pods")
        for node, labels in self._labels.items():
            self._patch_node(node, dict.fromkeys(labels))
        if self.is_configured:
            self._ask("DELETE", CONFIGURATION)

    def _until(self, condition, what):
        until(condition, every_s=LOOK_S, what=what)

    def _ask(self, method, path, **options):
        answer = self.api.request(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json()

    def create(self, kind, name, body=None, /, **spec):
        """Create an object, in the scenario's namespace if it is in one; a queue stays, empty."""
        metadata = {"namespace": self.namespace} if kind.namespaced else {}
        obj = of(kind, name, body, **metadata, **spec)
        return self._ask("POST", paths.collection(kind, self.namespace), json=obj)

    def budget(self, job, least):
        selector = {"matchLabels": {"volcano.sh/job-name": job}}
        self.create(DISRUPTION_BUDGETS, f"keep-{job}", minAvailable=least, selector=selector)

    def label(self, labels, *nodes):
        """Label nodes until the scenario is over."""
        for node in nodes:
            self._labels.setdefault(node, {}).update(labels)
            self._patch_node(node, labels)

    def _patch_node(self, node, labels):
        self._ask("PATCH", paths.one(NODES, "", node), json={"metadata": {"labels": labels}}, headers=MERGE)

    def configure(self, text):
        """Apply a configuration of the scheduler, as kubectl does; return the warnings."""
        self.api.post(paths.collection(NAMESPACES), json={"metadata": {"name": NAMESPACE}})
        body, params = config_map(NAME, NAMESPACE, **{KEY: text}), {"fieldManager": "drill", "force": "true"}
        answer = self.api.patch(CONFIGURATION, params=params, json=body, headers=APPLY)
        assert answer.is_success, answer.text
        self.is_configured = True
        return answer.headers.get_list("warning")

    def submit(self, name, *tasks, notes=None, **spec):
        made = job(name, *tasks, namespace=self.namespace, **spec)
        made["metadata"]["annotations"] = notes or {}
        return self._ask("POST", self._jobs, json=made)

    def delete(self, name):
        self._ask("DELETE", f"{self._jobs}/{name}")

    def job(self, name):
        return self._ask("GET", f"{self._jobs}/{name}")

    def jobs(self):
        return self._ask("GET", self._jobs)["items"]

    def pods(self, name):
        """Return a job's pods by name."""
        found = self._ask("GET", f"{self._pods}?labelSelector={quote(f'volcano.sh/job-name={name}')}")
        return {each["metadata"]["name"]: each for each in found["items"]}

    def places(self, name):
        """Return how many unfinished pods of a job are on which nodes; those without a node are on ""."""
        going = (each for each in self.pods(name).values() if "deletionTimestamp" not in each["metadata"])
        unfinished = (each for each in going if each["status"].get("phase") in ("Pending", "Running"))
        return Counter(each["spec"].get("nodeName", "") for each in unfinished)

    def waits(self, name, reason, *words):
        """Wait until a job waits for a reason out of the closed list, and its message has these words."""

        def look():
            status = self.job(name).get("status") or {}
            message = (status.get("state") or {}).get("message", "")
            return status.get("waitingReason") == reason and all(each in message for each in words)

        self._until(look, lambda: f"{name} waits, {reason} {words}: {self.job(name)['status']}")

    def runs(self, name):
        """Wait until a job runs; return on which nodes its pods are."""

        def look():
            phase = ((self.job(name).get("status") or {}).get("state") or {}).get("phase")
            return phase == "Running" and not self.places(name)[""]

        self._until(look, lambda: f"{name} runs: {self.job(name).get('status')}")
        return dict(self.places(name))

    def comes_to(self, name, wanted):
        """Wait until a job's pods are where a function of their places says."""
        description = lambda: f"the places of {name}: {self.places(name)}, {self.job(name).get('status')}"  # noqa: E731
        self._until(lambda: wanted(self.places(name)), description)

    def check_reasons(self):
        """Whoever waits has a reason out of the closed list, and a sentence, as soon as he was looked at."""
        self._until(lambda: not self._silent(), lambda: f"a reason for each: {self._silent()}")

    def _silent(self):
        silent = []
        for each in self.jobs():
            state = (each.get("status") or {}).get("state") or {}
            if state.get("phase") == "Pending":
                reason = each["status"].get("waitingReason") or state.get("reason")
                if reason not in REASONS or not state.get("message"):
                    silent.append((each["metadata"]["name"], each["status"]))
        return silent
