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
import signal
import socket
import ssl
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import redis
from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection

from cluster.access import certificates
from cluster.access.accounts import login_link
from cluster.runtime import registry
from cluster.store import store
from kube.resources import LEASES, NODES
from node import sole
from volcano_ui import assets, celery_app, health, valkey, web
from volcano_ui.supervisor import Program, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READY_WITHIN_S = 60
PROBE_EVERY_S = 0.1
MANAGE = (sys.executable, str(settings.BASE_DIR / "manage.py"))


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


def run() -> int:
    """Start everything, wait for a signal, stop everything; return the exit status."""
    return asyncio.run(Up().run())


class Up:
    """One run of the system."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()
        self._held: list[TextIO | socket.socket] = []
        self._supervisor = Supervisor(
            logs=settings.DATA / "logs",
            cwd=settings.BASE_DIR,
            environment=_environment(),
            say=say,
        )

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt)
        starting = asyncio.create_task(self._start())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopped
        except StartError as error:
            say(f"✗ {error}")
            return 1
        finally:
            starting.cancel()
            await self._end()
        return 0

    def _interrupt(self) -> None:
        if self._stop.is_set():
            return
        say("Stopping.")
        self._stop.set()

    async def _end(self) -> None:
        begun = time.monotonic()
        await self._supervisor.stop()
        for held in self._held:
            held.close()
        if self._stop.is_set():
            say(f"✓ everything is stopped ({time.monotonic() - begun:.1f} s)")

    async def _start(self) -> None:
        with step(f"state directory {settings.DATA}"):
            self._take_state_directory()
        with step(f"port {settings.PORT}, and {settings.API_PORT} for the Kubernetes API"):
            pages = self._take_port(settings.PORT, "PORT")
            api = self._take_port(settings.API_PORT, "API_PORT")
        with step("front end"):
            await self._build_assets()
        with step("Redis"):
            await self._start_redis()
        with step("database"):
            revision = await asyncio.to_thread(_prepare_database)
        with step("certificates"):
            _take_certificates()
        programs = _programs(pages, api)
        await asyncio.gather(*(self._supervisor.start(program) for program in programs))
        probes: dict[str, Callable[[], None]] = {
            "web server": _ask_web,
            "API server": _ask_api,
            "Celery workers": _ask_workers,
            "nodes": lambda: _ask_nodes(revision),
        }
        await asyncio.gather(*(self._ready(name, ask) for name, ask in probes.items()))
        say(
            f"The Kubernetes API is at {_local_api()}; the page Connect and `manage.py kubeconfig` say how to use it."
        )
        say(f"Open {await asyncio.to_thread(_address)}")

    def _take_state_directory(self) -> None:
        _refuse([m for m in run_checks(tags=["state"]) if m.is_serious()])
        for name in ("", "logs", "run"):
            (settings.DATA / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        path = settings.DATA / "run" / "up.lock"
        lock = sole.take(path)
        if lock is None:
            pid = sole.holder(path)
            raise StartError(
                f"The state directory {settings.DATA} is in use by another `up`, pid {pid}. "
                f"Stop that one (kill {pid}), or choose another directory: make up DATA=/some/dir PORT=9000."
            )
        self._held.append(lock)

    def _take_port(self, port: int, variable: str) -> socket.socket:
        try:
            listener = web.listen(settings.LISTEN, port)
        except OSError as error:
            reason = {
                errno.EADDRINUSE: f"Port {port} is taken by another program.",
                errno.EACCES: f"Port {port} needs root rights.",
            }.get(error.errno or 0)
            if reason is None:
                raise StartError(
                    f"Cannot listen on {settings.LISTEN}: {error.strerror}. "
                    "Set VOLCANO_UI_LISTEN to an address of this machine, such as 127.0.0.1."
                ) from None
            raise StartError(f"{reason} Choose another: make up {variable}={_free_port()}.") from None
        self._held.append(listener)
        return listener

    async def _build_assets(self) -> None:
        # A process of its own, which a signal ends together with the tools that it runs.
        if not assets.built() and await self._supervisor.call(*MANAGE, "assets"):
            raise StartError("The front end could not be built; what is above says why.")

    async def _start_redis(self) -> None:
        if valkey.url(settings.DATA) == settings.REDIS_URL:
            await self._supervisor.start(_redis())
        try:
            await _until(health.ask_redis, redis.RedisError, within_s=10)
        except redis.RedisError:
            _refuse(run_checks(tags=["redis"], include_deployment_checks=True))

    async def _ready(self, name: str, ask: Callable[[], None]) -> None:
        with step(name):
            try:
                await _until(ask, OSError, within_s=READY_WITHIN_S)
            except OSError as error:
                raise StartError(
                    f"The {name} did not answer within {READY_WITHIN_S} s ({error}). See {settings.DATA}/logs."
                ) from None


def _environment() -> dict[str, str]:
    """Return the environment of the children: ours, without the buffers they have no use for."""
    return {
        **os.environ,
        "VOLCANO_UI_DATA": str(settings.DATA),
        "VOLCANO_UI_PORT": str(settings.PORT),
        "VOLCANO_UI_API_PORT": str(settings.API_PORT),
        # One process a core is what the machine shares out; threads of BLAS would only take memory.
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
    }


def _redis() -> Program:
    binary = valkey.find_server()
    if binary is None:
        raise StartError("There is no Redis to start; install valkey or redis, or set VOLCANO_UI_REDIS_URL.")
    path = valkey.socket_path(settings.DATA)
    return Program("redis", valkey.command(binary, path), stage=3, before=lambda: valkey.prepare(path))


def _programs(pages: socket.socket, api: socket.socket) -> list[Program]:
    """Return what runs beside Redis. The agent ends first, so that its pods end while somebody listens."""
    programs = [
        *(
            Program(
                name,
                [sys.executable, "-m", module, f"--fd={listener.fileno()}"],
                1,
                3,
                descriptors=(listener.fileno(),),
            )
            for name, module, listener in (
                ("web", "volcano_ui.web", pages),
                ("apiserver", "volcano_ui.apiserver", api),
            )
        ),
        *(Program(queue, [*MANAGE, "worker", queue], stage=2) for queue in registry.queues()),
        Program("beat", [*MANAGE, "beat"], stage=1),
        Program("agent", [*MANAGE, "agent"], stage=0, patience_s=5, orphaned=signal.SIGTERM),
    ]
    if settings.NODES:
        programs.append(Program("simulator", [*MANAGE, "simulator", f"--nodes={settings.NODES}"], stage=0))
    return programs


def _take_certificates() -> None:
    try:
        certificates.current()
    except (ImproperlyConfigured, OSError) as error:
        raise StartError(str(error)) from None


def _prepare_database() -> int:
    """Migrate, make the first objects, and return the revision before any node reports."""
    try:
        call_command("migrate", interactive=False, verbosity=0)
        call_command("bootstrap", verbosity=0, stdout=io.StringIO())
        return store.revision()
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


def _ask_web() -> None:
    with urllib.request.urlopen(f"{_local_address()}/healthz", timeout=5):  # noqa: S310
        pass


def _ask_api() -> None:
    context = ssl.create_default_context(cafile=certificates.current().ca)
    # An administrator's own certificate need not be for the address that is asked here.
    context.check_hostname = False
    with urllib.request.urlopen(f"{_local_api()}/readyz", timeout=5, context=context):  # noqa: S310
        pass


def _local_host() -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.LISTEN, settings.LISTEN)  # noqa: S104


def _local_address() -> str:
    return f"http://{_local_host()}:{settings.PORT}"


def _local_api() -> str:
    return f"https://{_local_host()}:{settings.API_PORT}"


def _ask_workers() -> None:
    expected = [f"{queue}@volcano-ui" for queue in registry.queues()]
    answers = celery_app.control.ping(destination=expected, timeout=1.0, limit=len(expected))
    if len(answers) < len(expected):
        silent = set(expected).difference(*answers)
        raise TimeoutError(f"no answer from {', '.join(sorted(silent))}")


def _ask_nodes(revision: int) -> None:
    """Raise TimeoutError unless this machine's agent and the simulator have reported after a revision."""
    try:
        # The state, not the log: a reader of the log may come too late for what it looks for.
        newest = [one for kind in (NODES, LEASES) for one in store.find(kind, order="-revision", limit=1)]
        reported = any(one.revision > revision for one in newest)
        nodes = store.count(NODES).get("Ready", 0)
    finally:
        connection.close()
    if not reported or nodes <= settings.NODES:
        raise TimeoutError(f"{nodes} of {settings.NODES + 1} have reported")


def _address() -> str:
    """Return a one-time login link, on the host by which people reach this machine."""
    base = (
        f"{'https' if settings.HTTPS else 'http'}://{settings.HOSTS[0]}"
        if settings.HOSTS
        else _local_address()
    )
    try:
        return login_link(base)
    finally:
        connection.close()


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


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
