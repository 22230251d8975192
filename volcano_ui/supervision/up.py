"""`manage.py up`: everything on one machine, in one terminal.

What can go wrong is checked before anything is started. Migration, first objects and login link
are done in this process, because each process that loads Django costs half a second; the other programs
start in parallel. Each is ready when it has answered its probe (`volcano_ui.supervision.probes`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import redis
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection, connections

from cluster import clock, pid_lock
from cluster.access import certificates, site
from cluster.access.accounts import login_link
from cluster.api import engines, walls
from cluster.remote import freshness, recorder
from cluster.remote.door import server
from cluster.remote.http.target import IN_CLUSTER
from cluster.remote.leader_election import standby
from cluster.remote.webhooks import hooks
from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import NodeEngine
from cluster.store import store
from cluster.version import VERSION, is_newer
from node import leftovers
from node.leftovers import AtStop
from node.paths import Layout
from volcano_ui import assets, env, health, heartbeat, migration, sockets, state_version, valkey
from volcano_ui.supervision import database_claim, held_ports, probes, programs, reporting, stopping
from volcano_ui.supervision.health_server import HealthServer
from volcano_ui.supervision.supervisor import Program, Supervisor
from volcano_ui.supervision.works import Works

READY_WITHIN_S = 60
PROBE_EVERY_S = 0.1


class StartError(Exception):
    """The system cannot start; the message says why, and what to do."""


def say(line: str) -> None:
    """Print one line of progress at once; go on if the terminal was closed."""
    try:
        print(line, flush=True)  # noqa: T201
    except OSError:
        # Python would try the line again at its end, and end with a failure.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print a step as done after its block, with the time that it took if that is half a second or more."""
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    say(f"✓ {name}" + (f" ({took:.1f} s)" if took >= 0.5 else ""))


def run(*, is_behind_front: bool = False) -> int:
    """Start everything, wait for a signal, stop everything; return the exit status."""
    return asyncio.run(Up(is_behind_front=is_behind_front).run())


class Up:
    """One run of the system; behind a front it is one of several clusters (`volcano_ui.supervision.clusters`)."""

    def __init__(self, *, is_behind_front: bool = False, data: Path | None = None) -> None:
        self._is_behind_front = is_behind_front
        self._data = data or settings.DATA
        self._pods = Layout(settings.STATE)
        self._stop = asyncio.Event()
        self._works: Works | None = None
        self._resources: list[TextIO | socket.socket] = []
        self._reporting: asyncio.Task[None] | None = None
        self._claim = database_claim.Claim()
        self._claiming: asyncio.Task[None] | None = None
        logs = self._data / "logs" if settings.LOG_FILES else None
        self._ports = held_ports.HeldPorts(settings.STATE, self._data, log=logs and logs / held_ports.LOG, say=say)
        self._engines: dict[str, NodeEngine] = {}  # by node, as reported before this `up` began
        self._ports_lapsed = False  # whether a pod may have listened on the port of the pages meanwhile
        self._supervisor = Supervisor(
            logs=logs, cwd=settings.BASE_DIR, environment=_environment(), say=say, spared=self._spared
        )

    def _spared(self) -> set[int]:
        if settings.RUNNING == AtStop.END:
            return {self._ports.pid}
        return {self._ports.pid, *leftovers.shims(self._pods), *leftovers.network_keepers(self._pods)}

    async def run(self) -> int:
        os.umask(0o077)  # of all programs but the agent
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt)
        living = asyncio.create_task(heartbeat.from_the_loop())
        starting = asyncio.create_task(self._start())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await self._wait_for_end(stopped)
        except StartError as error:
            say(f"✗ {error}")
            return 1
        finally:
            starting.cancel()
            await self._end()
            living.cancel()
        return 0

    async def _wait_for_end(self, stopped: asyncio.Task[bool]) -> None:
        ends: set[asyncio.Task[Any]] = {stopped}
        if self._works is not None:
            ends.add(asyncio.create_task(self._works.ended()))
        if self._claiming is not None:
            ends.add(self._claiming)
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()

    def _interrupt(self) -> None:
        if self._stop.is_set():
            self._supervisor.hurry()
            return
        say(stopping.begin_message(settings.RUNNING, leftovers.pods(self._pods)))
        self._stop.set()

    async def _end(self) -> None:
        if self._stop.is_set():
            await self._supervisor.outwait()
        begun = time.monotonic()
        if self._works is not None:
            self._works.stop()
        for task in filter(None, (self._reporting, self._claiming)):
            task.cancel()
        await self._supervisor.stop()
        if self._works is not None:
            await self._works.leave()
        await asyncio.to_thread(self._claim.release)
        pods = leftovers.pods(self._pods)
        holder = self._ports.end(has_pods=bool(pods))
        for resource in self._resources:
            resource.close()
        if self._stop.is_set():
            took = f"({time.monotonic() - begun:.1f} s)"
            say(stopping.end_message(settings.RUNNING, pods, took, holder))

    async def _start(self) -> None:
        with step(f"state directory {settings.DATA}"):
            self._take_state_directory()
        if settings.ONLY != "web":  # which is one program
            await self._supervisor.start_fork_server()
        pages, api = self._take_ports()
        if settings.ONLY != "works":
            with step("front end"):
                await self._build_assets()
        with step("Redis"):
            await self._start_redis()
        with step(f"database {env.database_label(settings.DATABASES['default'])}"):
            revision = await asyncio.to_thread(_prepare_database, self._claim)
            self._engines = await asyncio.to_thread(_engines)
        await self._settle()
        if settings.TARGET is None:
            with step("certificates"):
                _take_certificates()
            self._claiming = asyncio.create_task(self._keep_database())
        site.write()
        lasting = programs.lasting(pages, api, self._take_webhook_port())
        await asyncio.gather(*(self._supervisor.start(program) for program in lasting))
        begun = clock.milliseconds()
        if settings.TARGET is not None and settings.ONLY != "web":
            await self._work(pages)
        readiness = self._readiness_probes(revision, begun, works=self._works is not None and self._works.leads)
        await asyncio.gather(*(self._ready(name, probe) for name, probe in readiness.items()))
        for line in await asyncio.to_thread(_about_walls, self._engines):
            say(line)
        say(await asyncio.to_thread(_about_cluster))
        if self._works is not None:
            say(self._works.status_text())
        if settings.CLUSTER is not None:
            self._reporting = asyncio.create_task(reporting.report_forever())
        if settings.ONLY == "works":
            say(f"Its health is served at {site.local_pages()}/healthz")
        elif not self._is_behind_front:
            say(f"Open {await asyncio.to_thread(login_address)}")

    async def _keep_database(self) -> None:
        """Renew the claim on the database; raise StartError if another `up` took it while the server was away."""
        while True:
            await asyncio.sleep(database_claim.RENEWED_EVERY_S)
            try:
                await asyncio.to_thread(self._claim.renew)
            except database_claim.DatabaseInUse as error:
                raise StartError(str(error)) from None

    async def _work(self, listener: socket.socket) -> None:
        """Run mirror, workers and beat while this `up` leads, and serve their health if there is no web server here."""
        candidate = standby.Candidate(settings.INSTANCE)
        self._works = works = Works(self._supervisor, programs.works(), candidate, say)
        await works.start()
        if settings.ONLY == "works":
            HealthServer(listener, lambda: probes.works(leads=works.leads))

    def _take_state_directory(self) -> None:
        _refuse([m for m in run_checks(tags=["state"]) if m.is_serious()])
        for name in ("", "logs", "run"):
            (self._data / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        # Certificates of a kubeconfig, written for processes that are gone.
        shutil.rmtree(self._data / "run" / "kubeconfig", ignore_errors=True)
        path = self._data / site.LOCK
        lock = pid_lock.take(path)
        if lock is None:
            pid = pid_lock.holder(path)
            raise StartError(
                f"The state directory {self._data} is in use by another `up`, pid {pid}. "
                f"Stop that one (kill {pid}), or choose another directory: {env.up_command(DATA='/some/dir', PORT=9000)}."
            )
        self._resources.append(lock)
        has_pods = bool(leftovers.shims(self._pods))
        if self._runs_pods() or has_pods:
            self._ports_lapsed = self._ports.begin(has_pods=has_pods)
        # Earlier versions created the database with the user's umask.
        for file in self._data.glob("db.sqlite3*"):
            file.chmod(0o600)

    def _runs_pods(self) -> bool:
        return settings.TARGET is None

    async def _settle(self) -> None:
        """Record the version and the holder of the ports; end all sessions if a pod may have received their cookies."""
        if upgrade := _note_version():
            say(upgrade)
        if self._ports_lapsed and await asyncio.to_thread(_end_sessions) > 0:
            say(
                "Everybody has to log in again: pods went on while nobody held the port of the pages,"
                " so one of them could have received the session cookies of browsers."
            )
        self._ports.settle()

    def _take_ports(self) -> tuple[socket.socket, socket.socket | None]:
        """Listen for the pages, and for the API of an embedded cluster; another cluster has an API of its own."""
        address = f"socket of {settings.CLUSTER_NAME}" if self._is_behind_front else f"port {settings.PORT}"
        if settings.TARGET is not None:
            with step(address):
                return self._take_pages(), None
        with step(f"{address}, and {settings.API_PORT} for the Kubernetes API"):
            return self._take_pages(), self._take_port(settings.API_PORT, "API_PORT")

    def _take_pages(self) -> socket.socket:
        if not self._is_behind_front:
            return self._take_port(settings.PORT, "PORT")
        path = sockets.of_cluster(settings.STATE, settings.CLUSTER_NAME)
        try:
            listener = sockets.listen(path)
        except OSError as error:
            raise StartError(f"Cannot listen on {path}: {error.strerror or error}.") from None
        self._resources.append(listener)
        return listener

    def _take_webhook_port(self) -> socket.socket | None:
        """Listen for admission webhooks, if they are set; not in an `up` that runs mirror, workers and beat alone."""
        if settings.WEBHOOKS is None or settings.ONLY == "works":
            return None
        host = hooks.interface(settings.WEBHOOKS, settings.LISTEN)
        return self._take_port(settings.WEBHOOK_PORT, "WEBHOOK_PORT", host)

    def _take_port(self, port: int, variable: str, host: str = "") -> socket.socket:
        host = host or settings.LISTEN
        try:
            return self._ports.listen(host, port)
        except OSError as error:
            reason = {errno.EADDRINUSE: _port_problem(port), errno.EACCES: f"Port {port} needs root rights."}.get(
                error.errno or 0
            )
            if reason is None:
                raise StartError(
                    f"Cannot listen on {host}: {error.strerror}. "
                    "Set VOLCANO_UI_LISTEN to an address of this machine, such as 127.0.0.1."
                ) from None
            raise StartError(f"{reason} Choose another: {env.up_command(**{variable: _free_port()})}.") from None

    async def _build_assets(self) -> None:
        # A process of its own, which a signal ends together with the tools that it runs.
        if not assets.built() and await self._supervisor.call(*programs.MANAGE, "assets"):
            raise StartError("The front end could not be built; what is above says why.")

    async def _start_redis(self) -> None:
        if valkey.url(settings.DATA) == settings.REDIS_URL:
            binary = valkey.find_server()
            if binary is None:
                raise StartError("There is no Redis to start; install valkey or redis, or set VOLCANO_UI_REDIS_URL.")
            command = valkey.command(binary, valkey.socket_path(settings.DATA))
            prepare = partial(valkey.prepare, settings.DATA)
            await self._supervisor.start(Program("redis", command, stage=3, before=prepare, probe=health.ask_redis))
        try:
            await _until(health.ask_redis, redis.RedisError, within_s=10)
        except redis.RedisError:
            _refuse(run_checks(tags=["redis"], include_deployment_checks=True))

    def _readiness_probes(self, revision: int, begun: int, *, works: bool) -> dict[str, Callable[[], None]]:
        """Return by its name each probe that must succeed before the login link is printed.

        `revision` is the one before any node reports, `begun` the time (epoch ms) before the mirror starts. `works` says
        that this `up` leads.
        """
        web = {"web server": probes.ask_web_behind_front if self._is_behind_front else probes.ask_web}
        workers = {"Celery workers": probes.ask_workers}
        if settings.TARGET is None:
            nodes = {"nodes": lambda: probes.ask_nodes(revision)}
            return {**web, "API server": probes.ask_api, **workers, **nodes}
        working = {**workers, "mirror": lambda: probes.ask_mirror(begun)} if works else {}
        return working if settings.ONLY == "works" else web | working

    async def _ready(self, name: str, probe: Callable[[], None]) -> None:
        with step(name):
            try:
                await _until(probe, OSError, within_s=READY_WITHIN_S)
            except OSError as error:
                where = f"See {settings.DATA}/logs." if settings.LOG_FILES else "What is above may say why."
                problem = f"The {name} did not answer within {READY_WITHIN_S} s ({error})."
                raise StartError(f"{problem} {where}") from None


def _environment() -> dict[str, str]:
    """Return the environment of the programs: ours, the settings that options have changed, and limits on memory."""
    target: dict[str, str] = {}
    if settings.TARGET is not None and settings.CLUSTER is None:
        # Pinned: somebody may make another context the current one while this runs.
        target["VOLCANO_UI_KUBECONFIG"] = settings.TARGET.kubeconfig or IN_CLUSTER
        target["VOLCANO_UI_CONTEXT"] = settings.TARGET.name if settings.TARGET.kubeconfig else ""
    return {
        **os.environ,
        **target,
        "VOLCANO_UI_DATA": str(settings.STATE),
        "VOLCANO_UI_PORT": str(settings.PORT),
        "VOLCANO_UI_API_PORT": str(settings.API_PORT),
        # One process a core is what the machine shares out; threads of BLAS would only take memory.
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
    }


def _take_certificates() -> None:
    try:
        certificates.current()
    except (ImproperlyConfigured, OSError) as error:
        raise StartError(str(error)) from None


def _prepare_database(claim: database_claim.Claim) -> int:
    """Migrate, make the first objects, and return the revision before any node reports."""
    is_ours_alone = settings.TARGET is None
    try:
        if is_ours_alone:
            claim.take()
        with migration.alone():
            # Parts of one installation may be of two versions while these change.
            migration.check(may_be_newer=bool(settings.ONLY))
            migration.migrate()
            _claim_database()
            if is_ours_alone:
                claim.write()
                call_command("bootstrap", verbosity=0, stdout=io.StringIO())
        return store.revision()
    except (database_claim.DatabaseInUse, migration.Refused) as error:
        raise StartError(str(error)) from None
    except DatabaseError as error:
        reason = str(error).strip().partition("\n")[0]
        remedy = (
            f"Move {settings.DATABASES['default']['NAME']} away to begin with an empty one."
            if connection.vendor == "sqlite"
            else "Start the server, or correct DATABASE_URL."
        )
        raise StartError(f"The database cannot be used: {reason}. {remedy}") from None
    finally:
        connection.close()


def _note_version() -> str:
    """Record this version in the state directory; return a line for people if an older version used it before."""
    before = state_version.read(settings.DATA)
    state_version.write(settings.DATA)
    return f"What version {before} left goes on with {VERSION}." if is_newer(VERSION, before) and before else ""


def _end_sessions() -> int:
    """End all sessions, in a database that may not be migrated yet; return how many there were."""
    try:
        accounts = connections[settings.ACCOUNTS_DATABASE]
        if Session._meta.db_table not in accounts.introspection.table_names():
            return 0
        return Session.objects.using(settings.ACCOUNTS_DATABASE).delete()[0]
    except DatabaseError as error:
        raise StartError(f"The sessions cannot be ended: {error}") from None
    finally:
        connections.close_all()


def _claim_database() -> None:
    """Claim a new database for this cluster; refuse that of another one, because the objects of the two would mix."""
    own, mirrored = settings.TARGET and settings.TARGET.server, recorder.cluster()
    theirs = mirrored.server if mirrored else None
    if own == theirs:
        return
    if theirs is not None or store.revision():
        whose = f"the cluster at {theirs}" if theirs else "an embedded cluster"
        raise StartError(
            f"The database {env.database_label(settings.DATABASES['default'])} holds {whose}. Give this cluster a database of"
            " its own: another DATABASE_URL, or none for SQLite in its state directory."
        )
    recorder.claim(str(own))


def _engines() -> dict[str, NodeEngine]:
    """Return the engine that each node reports, by the node's name."""
    try:
        return {each.node: each for each in engines.reported()}
    finally:
        connection.close()


def _about_walls(before: Mapping[str, NodeEngine]) -> list[str]:
    """Return a line for the wall of each node and one for its engine; `before` has the engines before this start."""
    try:
        lines = [(wall.node, f"{wall.sentence} {walls.who_may(wall)}".rstrip()) for wall in walls.reported()]
    finally:
        connection.close()
    lines += [(name, node_engines.startup_message(each, before.get(name))) for name, each in _engines().items()]
    are_several = len({node for node, _ in lines}) > 1
    return [f"{node}: {sentence}" if are_several else sentence for node, sentence in lines]


def _about_cluster() -> str:
    """Return a sentence that says where the cluster's API is."""
    try:
        current = freshness.current()
    finally:
        connection.close()
    if current is None:
        return (
            f"The Kubernetes API is at {site.local_api()};"
            f" the page Connect and `{settings.KUBECONFIG_COMMAND}` say how to use it."
        )
    why = f" ({current.why})" if current.why else ""
    return f"The cluster {current.name} at {server.target().server} is {current.word}{why}."


def login_address() -> str:
    """Return a one-time login link, on the host by which people reach this machine."""
    try:
        return login_link(site.of_settings().pages)
    finally:
        connections.close_all()


async def _until(probe: Callable[[], None], failure: type[Exception], *, within_s: float) -> None:
    """Call `probe` in a thread until it raises nothing; raise its `failure` once `within_s` is over."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return await asyncio.to_thread(probe)
        except failure:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PROBE_EVERY_S)


def _refuse(messages: list[CheckMessage]) -> None:
    if messages:
        raise StartError("\n✗ ".join(f"{message.msg} {message.hint or ''}".rstrip() for message in messages))


def _port_problem(port: int) -> str:
    holding = held_ports.held_for(port)
    if holding is None:
        return f"Port {port} is taken by another program."
    pid, state = holding
    return (
        f"Port {port} is held by process {pid} for the cluster of {state}, which is stopped while pods of it go on."
        f" To end them: {env.up_command(DATA=state, RUNNING='end')}, and Ctrl-C."
    )


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
