"""`manage.py up`: everything on one machine, in one terminal.

What can go wrong is looked at before anything is started. Migration, first objects and login link
are done in this process, because each process that loads Django costs half a second; the others
start side by side. Ready means answered: a page, a ping, a node.
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
from volcano_ui import assets, env, health, heartbeat, kept_version, migration, sockets, valkey
from volcano_ui.supervision import database_claim, held_ports, probes, programs, reporting, stopping
from volcano_ui.supervision.health_server import HealthServer
from volcano_ui.supervision.supervisor import Program, Supervisor
from volcano_ui.supervision.works import Works

READY_WITHIN_S = 60
PROBE_EVERY_S = 0.1


class StartError(Exception):
    """The system cannot start; the message says why, and what to do."""


def say(line: str) -> None:
    """Print one line of progress at once; a terminal that was closed keeps nothing from being done."""
    try:
        print(line, flush=True)  # noqa: T201
    except OSError:
        # Python would try the line again at its end, and end with a failure.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def step(name: str) -> Iterator[None]:
    """Tick off what the block does, with its time when that can be felt."""
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
        self._held: list[TextIO | socket.socket] = []
        self._reporting: asyncio.Task[None] | None = None
        self._claim = database_claim.Claim()
        self._claiming: asyncio.Task[None] | None = None
        logs = self._data / "logs" if settings.LOG_FILES else None
        self._ports = held_ports.HeldPorts(settings.STATE, self._data, log=logs and logs / held_ports.LOG, say=say)
        self._engines: dict[str, NodeEngine] = {}  # what the nodes said of theirs when this `up` began
        self._lapsed = False  # whether pods can have been where browsers look for the pages
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
        say(stopping.begins(settings.RUNNING, leftovers.pods(self._pods)))
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
        for held in self._held:
            held.close()
        if self._stop.is_set():
            took = f"({time.monotonic() - begun:.1f} s)"
            say(stopping.ended(settings.RUNNING, pods, took, holder))

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
        with step(f"database {env.shown_database(settings.DATABASES['default'])}"):
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
        questions = self._questions(revision, begun, works=self._works is not None and self._works.leads)
        await asyncio.gather(*(self._ready(name, ask) for name, ask in questions.items()))
        for line in await asyncio.to_thread(_about_walls, self._engines):
            say(line)
        say(await asyncio.to_thread(_about_cluster))
        if self._works is not None:
            say(self._works.standing())
        if settings.CLUSTER is not None:
            self._reporting = asyncio.create_task(reporting.go_on())
        if settings.ONLY == "works":
            say(f"Its health is told at {site.local_pages()}/healthz")
        elif not self._is_behind_front:
            say(f"Open {await asyncio.to_thread(login_address)}")

    async def _keep_database(self) -> None:
        """Keep other `up`s from the database; StartError where one has come while its server was away."""
        while True:
            await asyncio.sleep(database_claim.RENEWED_EVERY_S)
            try:
                await asyncio.to_thread(self._claim.renew)
            except database_claim.DatabaseInUse as error:
                raise StartError(str(error)) from None

    async def _work(self, listener: socket.socket) -> None:
        """Run mirror, workers and beat whenever it is this `up`'s turn, and tell of their health where no web server does."""
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
        self._held.append(lock)
        has_pods = bool(leftovers.shims(self._pods))
        if self._runs_pods() or has_pods:
            self._lapsed = self._ports.begin(has_pods=has_pods)
        # Earlier versions made the database as the user's umask had it.
        for file in self._data.glob("db.sqlite3*"):
            file.chmod(0o600)

    def _runs_pods(self) -> bool:
        return settings.TARGET is None

    async def _settle(self) -> None:
        """Note whose version the directory is from here on; end the sessions of everybody where a pod may have been sent their cookies; the ports are held from here on."""
        if before := _taken_on():
            say(before)
        if self._lapsed and await asyncio.to_thread(_end_sessions) > 0:
            say(
                "Everybody has to log in again: pods went on while nobody held the port of the pages,"
                " where one could have been sent what browsers send with their requests."
            )
        self._ports.settle()

    def _take_ports(self) -> tuple[socket.socket, socket.socket | None]:
        """Listen for pages, and for the API of an embedded cluster; another one has its own."""
        place = f"socket of {settings.CLUSTER_NAME}" if self._is_behind_front else f"port {settings.PORT}"
        if settings.TARGET is not None:
            with step(place):
                return self._take_pages(), None
        with step(f"{place}, and {settings.API_PORT} for the Kubernetes API"):
            return self._take_pages(), self._take_port(settings.API_PORT, "API_PORT")

    def _take_pages(self) -> socket.socket:
        if not self._is_behind_front:
            return self._take_port(settings.PORT, "PORT")
        path = sockets.of_cluster(settings.STATE, settings.CLUSTER_NAME)
        try:
            listener = sockets.listen(path)
        except OSError as error:
            raise StartError(f"Cannot listen on {path}: {error.strerror or error}.") from None
        self._held.append(listener)
        return listener

    def _take_webhook_port(self) -> socket.socket | None:
        """Listen for the questions of the cluster's API server, where there are any; an `up` that only works is not asked."""
        if settings.WEBHOOKS is None or settings.ONLY == "works":
            return None
        host = hooks.interface(settings.WEBHOOKS, settings.LISTEN)
        return self._take_port(settings.WEBHOOK_PORT, "WEBHOOK_PORT", host)

    def _take_port(self, port: int, variable: str, host: str = "") -> socket.socket:
        host = host or settings.LISTEN
        try:
            return self._ports.listen(host, port)
        except OSError as error:
            reason = {errno.EADDRINUSE: _who_has(port), errno.EACCES: f"Port {port} needs root rights."}.get(
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
            await self._supervisor.start(Program("redis", command, stage=3, before=prepare, ask=health.ask_redis))
        try:
            await _until(health.ask_redis, redis.RedisError, within_s=10)
        except redis.RedisError:
            _refuse(run_checks(tags=["redis"], include_deployment_checks=True))

    def _questions(self, revision: int, begun: int, *, works: bool) -> dict[str, Callable[[], None]]:
        """Return what must have answered before people are let in, by its name.

        revision is that before any node reports, begun the time before the mirror does.
        """
        web = {"web server": probes.ask_web_behind_front if self._is_behind_front else probes.ask_web}
        workers = {"Celery workers": probes.ask_workers}
        if settings.TARGET is None:
            nodes = {"nodes": lambda: probes.ask_nodes(revision)}
            return {**web, "API server": probes.ask_api, **workers, **nodes}
        working = {**workers, "mirror": lambda: probes.ask_mirror(begun)} if works else {}
        return working if settings.ONLY == "works" else web | working

    async def _ready(self, name: str, ask: Callable[[], None]) -> None:
        with step(name):
            try:
                await _until(ask, OSError, within_s=READY_WITHIN_S)
            except OSError as error:
                where = f"See {settings.DATA}/logs." if settings.LOG_FILES else "What is above may say why."
                problem = f"The {name} did not answer within {READY_WITHIN_S} s ({error})."
                raise StartError(f"{problem} {where}") from None


def _environment() -> dict[str, str]:
    """Return the environment of the children: ours, without the buffers they have no use for."""
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
        said = str(error).strip().partition("\n")[0]
        remedy = (
            f"Move {settings.DATABASES['default']['NAME']} away to begin with an empty one."
            if connection.vendor == "sqlite"
            else "Start the server, or correct DATABASE_URL."
        )
        raise StartError(f"The database cannot be used: {said}. {remedy}") from None
    finally:
        connection.close()


def _taken_on() -> str:
    """Note that this version has the state directory; return what is to be said where an older one had it."""
    before = kept_version.read(settings.DATA)
    kept_version.write(settings.DATA)
    return f"What version {before} left goes on with {VERSION}." if is_newer(VERSION, before) and before else ""


def _end_sessions() -> int:
    """Log everybody out, in a database that may not have been migrated yet; return how many sessions that were."""
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
    """Refuse the database of another cluster: the objects of two would mix. A new one is taken."""
    mine, known = settings.TARGET and settings.TARGET.server, recorder.cluster()
    theirs = known.server if known else None
    if mine == theirs:
        return
    if theirs is not None or store.revision():
        whose = f"the cluster at {theirs}" if theirs else "an embedded cluster"
        raise StartError(
            f"The database {env.shown_database(settings.DATABASES['default'])} holds {whose}. Give this cluster a database of"
            " its own: another DATABASE_URL, or none for SQLite in its state directory."
        )
    recorder.claim(str(mine))


def _engines() -> dict[str, NodeEngine]:
    """Return what the nodes say of their engines."""
    try:
        return {each.node: each for each in engines.reported()}
    finally:
        connection.close()


def _about_walls(before: Mapping[str, NodeEngine]) -> list[str]:
    """Say what keeps pods from this machine, whose run where nothing does, and by what images run; before is what ran them."""
    try:
        told = [(wall.node, f"{wall.sentence} {walls.who_may(wall)}".rstrip()) for wall in walls.reported()]
    finally:
        connection.close()
    told += [(name, node_engines.startup_message(each, before.get(name))) for name, each in _engines().items()]
    are_several = len({node for node, _ in told}) > 1
    return [f"{node}: {sentence}" if are_several else sentence for node, sentence in told]


def _about_cluster() -> str:
    """Say where the cluster's API is."""
    try:
        shown = freshness.current()
    finally:
        connection.close()
    if shown is None:
        return (
            f"The Kubernetes API is at {site.local_api()};"
            f" the page Connect and `{settings.KUBECONFIG_COMMAND}` say how to use it."
        )
    why = f" ({shown.why})" if shown.why else ""
    return f"The cluster {shown.name} at {server.target().server} is {shown.word}{why}."


def login_address() -> str:
    """Return a one-time login link, on the host by which people reach this machine."""
    try:
        return login_link(site.of_settings().pages)
    finally:
        connections.close_all()


async def _until(ask: Callable[[], None], failure: type[Exception], *, within_s: float) -> None:
    """Call ask in a thread until it raises nothing; a failure that lasts comes out."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return await asyncio.to_thread(ask)
        except failure:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PROBE_EVERY_S)


def _refuse(messages: list[CheckMessage]) -> None:
    if messages:
        raise StartError("\n✗ ".join(f"{message.msg} {message.hint or ''}".rstrip() for message in messages))


def _who_has(port: int) -> str:
    held = held_ports.held_for(port)
    if held is None:
        return f"Port {port} is taken by another program."
    pid, state = held
    return (
        f"Port {port} is held by process {pid} for the cluster of {state}, which is stopped while pods of it go on."
        f" To end them: {env.up_command(DATA=state, RUNNING='end')}, and Ctrl-C."
    )


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
