"""A cluster with one of everything, made by the product itself, and all of it that runs: in the test's process, on a clock that stands."""

import json
from contextlib import contextmanager

import msgspec
from django.contrib.auth.models import User
from django.test import Client

from apiserver.watch import follower
from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.consumers.consumer import Runner
from cluster.models import RoleBinding
from cluster.runtime import nudge, registry
from cluster.store import store
from dashboard import cluster_usage
from kube import resources
from node.simulator.fleet import Size
from node.simulator.simulator import Simulator
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from proof.simulation.parts.broker import Broker
from proof.simulation.parts.server import Server
from proof.simulation.people.request import Request
from scheduler import rehearsal, waiting_lines
from tests.verify import Person, Screen, noted, topics_of

MEMORIES = (cluster_usage, waiting_lines, rehearsal)
NAMESPACE, APART = "vault", "apart"  # where everything is, and where alone the outsider has a role
SIMULATED = {"ui.volcano.sh/simulated": "true"}
WATCH_S = 0.11  # longer than the API server's follower rests between two passes
PASSES = 3
ADDRESSES = (
    "/", "/jobs/", "/queues/", "/queues/default/", "/queues/spare/", "/queues/closed/", "/queues/parent/", "/queues/-/scheduler/", "/queues/-/scheduler/decisions/",
    "/nodes/", "/nodes/sim-0001/", "/network/", "/events/", "/audit/", "/access/", "/connect/", "/flows/", "/flows/-/templates/", "/cronjobs/", "/sweeps/",
    "/flows/vault/vault-flow/", "/flows/-/templates/vault/vault-steps/", "/cronjobs/vault/vault-nightly/", "/cronjobs/vault/vault-resting/",
    "/sweeps/vault/vault-old/", "/jobs/-/kubernetes/", "/jobs/-/operations/",
    *(f"/jobs/vault/vault-{name}/" for name in ("long", "paused", "ended", "waiting")),
    *(f"/jobs/vault/vault-long/?tab={tab}" for tab in ("decisions", "events", "yaml")),
)  # fmt: skip
# Whose log is read was chosen when the page was opened, so this topic is looked at without its page.
WATCHED = ("jobs:logs?name=vault-long&namespace=vault",)


def container(cpu="500m", command="true"):
    requests = {"cpu": cpu, "memory": "64Mi"}
    return {"name": "main", "image": "busybox", "command": ["sh", "-c", command], "resources": {"requests": requests}}


def task(name="main", replicas=2, seconds="3600", code="0", cpu="500m"):
    notes = {"ui.volcano.sh/duration-seconds": seconds, "ui.volcano.sh/exit-code": code}
    spec = {"containers": [container(cpu)], "restartPolicy": "Never", "nodeSelector": SIMULATED}
    return {"name": name, "replicas": replicas, "template": {"metadata": {"annotations": notes}, "spec": spec}}


def job(name, *tasks, namespace=NAMESPACE, **spec):
    """A job whose pods run on simulated nodes."""
    tasks = [*tasks] or [task()]
    return {
        "apiVersion": resources.JOBS.api_version,
        "kind": resources.JOBS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": sum(each["replicas"] for each in tasks), "tasks": tasks, **spec},
    }


def named(name, namespace=NAMESPACE, **fields):
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **fields}


def cron(name, **spec):
    return named(name, spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job(name)["spec"]}, **spec})


def objects():
    """Return kinds and objects of which the cluster has one each."""
    member = {"type": "Node", "selector": {"exactMatch": {"name": "sim-0001"}}}
    return [
        (resources.PRIORITY_CLASSES, named("urgent", "", value=100)),
        (resources.HYPER_NODES, named("rack", "", spec={"tier": 1, "members": [member]})),
        (resources.RESOURCE_QUOTAS, named("vault-quota", spec={"hard": {"pods": "60"}})),
        *((resources.QUEUES, named(name, "", spec={"weight": 1, **spec})) for name, spec in (("spare", {}), ("closed", {"state": "Closed"}), ("parent", {}), ("child", {"parent": "parent"}))),
        (resources.JOBS, job("vault-long", task(), task("extra", 1))),
        (resources.JOBS, job("vault-paused")),
        (resources.JOBS, job("vault-ended", task(replicas=1, seconds="1"))),
        (resources.JOBS, job("vault-failed", task(replicas=1, seconds="1", code="3"), maxRetry=1)),
        (resources.JOBS, job("vault-waiting", task(replicas=1, cpu="100"))),
        (resources.JOBS, job("apart-long", task(replicas=1), namespace=APART)),
        (resources.JOB_TEMPLATES, named("vault-steps", spec=job("steps", task(replicas=1))["spec"])),
        (resources.JOB_FLOWS, named("vault-flow", spec={"flows": [{"name": "vault-steps"}]})),
        (resources.CRON_JOBS, cron("vault-nightly")),
        (resources.CRON_JOBS, cron("vault-resting", suspend=True)),
        (resources.BATCH_JOBS, named("vault-kubernetes", spec={"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}})),
    ]  # fmt: skip


class Cluster:
    """The whole product: what runs of it works when it is let, pages and API answer at once."""

    def __init__(self, clock, world=None):
        self.clock, self.world = clock, world
        self.screens = [each.copy() for each in world.screens] if world else []
        self.running = None  # consumers and nodes, from when they work first
        self.server = None
        self.actors = {"system": access.SYSTEM}

    @contextmanager
    def here(self):
        """Let the process be this cluster's: its clock, its nudges, and nothing known of another store."""
        before = nudge.use(Broker(self.clock))
        for each in MEMORIES:
            each.forget()
        try:
            with clocks.using(self.clock):
                yield self
        finally:
            if self.server is not None:
                self.server.die()
            for each in MEMORIES:
                each.forget()
            nudge.use(before)

    def settle(self):
        """Let everybody work until nothing happens at this moment."""
        self.running = self.running or Running()
        while self.running.work():
            pass

    def run(self, name):
        """Let one consumer work until it has nothing to do."""
        self.running = self.running or Running()
        self.running.run(name)

    def send(self, actor, request):
        """Return the API server's answer to a request."""
        if self.server is None:
            self.server = Server("api", self.clock, self.actors)
        self.actors[actor.name] = actor
        return self.server.ask(msgspec.structs.replace(request, actor=actor.name))

    def ask(self, actor, path):
        """Return the API server's answer to somebody who reads."""
        return self.send(actor, Request(actor="", method="GET", path=path))

    def watch(self, actor, path):
        """Return the events that a watch tells until it has told what there is."""
        connection = self.server.connect(Request(actor=actor.name, method="GET", path=path))
        received, passes = [], 0
        while passes < PASSES:
            passes += follower.position >= store.revision()
            self.server.step()
            while chunks := connection.take():
                received += chunks
                self.server.step()
            self.clock.seconds += WATCH_S
        connection.leave()
        self.server.step()
        return [json.loads(line) for line in b"".join(received).splitlines()]


class Running:
    """Consumers and simulated nodes as processes that have just started."""

    def __init__(self):
        shards = [(each, number) for each in registry.running() for number in range(each.shards)]
        self.runners = [Runner(each, number, each.make(), holder="here") for each, number in shards]
        self.simulator = Simulator(3, Size(cpu="8", memory="16Gi", pods="16"))
        self.simulator.begin()

    def work(self):
        """Let each do what is to be done; tell whether any did something."""
        before = store.revision()
        for runner in self.runners:
            while runner.step():
                pass
        self.simulator.listener.hurry()
        self.simulator.work()
        return store.revision() > before

    def run(self, name):
        """Let the shards of one consumer do what is to be done."""
        for runner in self.runners:
            while runner.registration.name == name and runner.step():
                pass


class World:
    """What tests begin with: a cluster that stands still, two people, and their screens."""

    def __init__(self):
        self.us = ManualClock().us
        self.open_to_outsider = {APART}

    def make(self):
        """Make it in the database."""
        cluster = Cluster(ManualClock(self.us))
        with cluster.here():
            bootstrap()
            cluster.settle()
            for name in (NAMESPACE, APART):
                api.create(access.SYSTEM, resources.NAMESPACES, named(name, ""))
            cluster.settle()
            for resource, obj in objects():
                api.create(access.SYSTEM, resource, obj)
            self.reader = person("rita", User.objects.create_superuser)
            self.outsider = person("olive", User.objects.create_user)
            RoleBinding.objects.create(user_id=self.outsider.actor.user_id, namespace=APART, role="administrator")
            let_time_pass(cluster)
            post = self.reader.browser.post
            text = json.dumps(job("vault-old", task(replicas=1, seconds="{{number}}")))
            assert post("/sweeps/-/new/", {"text": text, "do": "submit", "grid-number": "1, 2"}).status_code == 302
            assert post("/jobs/vault/vault-paused/suspend/").status_code == 302
            let_time_pass(cluster)
            self.us = cluster.clock.us
            reader = Screen(self.reader, ADDRESSES, WATCHED, MEMORIES)
            # Who is not led to a topic may still ask for it.
            self.screens = [reader, Screen(self.outsider, (), reader.rendered, reads=reader.reads)]
        self.silent = {}  # address of a page without topics → what it is made of
        for address in (each for each, text in reader.pages.items() if not topics_of(text)):
            with noted() as self.silent[address]:
                self.outsider.browser.get(address)


def let_time_pass(cluster):
    for _ in range(3):
        cluster.settle()
        cluster.clock.move(3)
    cluster.settle()


def person(name, make):
    user = make(name)
    browser = Client()
    browser.force_login(user)
    return Person(access.for_user(user), browser)
