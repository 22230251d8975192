"""How many one-pod Volcano Jobs the Kubernetes API creates a second, posted one by one over TLS on loopback.

Each database has a system of its own; PostgreSQL, where it is installed,
syncs each commit to the disk as it does by default. The clients are one
process with kept-alive connections; which share of a core it takes is told,
so that it can be seen that the server is what is measured.

* lone: 200 jobs from one client, each after the answer to the one before.
* full: 10,000 jobs from 16 clients beside the running controllers, scheduler
  and simulated nodes, which make, bind and run the pods of the jobs meanwhile.
* server: the same, with nobody but the API server and Redis.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proof.benches import shapes
from proof.benches.clients.posters import NAME
from proof.benches.measure import cpu_s, percentile
from proof.harness.services import postgres_binaries, postgres_server, redis_server, running, wait_until
from proof.systems.system import PROJECT, System

CLIENTS, COUNT = 16, 10_000
LONE, WARM_UP = 200, 20
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
HOLD = "posting-release"  # nobody creates it: the pods run on, and their end costs nothing


def run(folder: Path, database: str, nodes: int) -> dict[str, Any] | None:
    """Return the figures of one database, measured on state below a folder; None where it is not installed."""
    with _address(database) as variables:
        if variables is None:
            return None
        system = System(folder / database, nodes=nodes, **variables)
        with system:
            secret = _secret(system)
            pid = system.children()["apiserver"]
            _posted(system, secret, pid, "warm", WARM_UP, 1)
            lone = _posted(system, secret, pid, "lone", LONE, 1)
            full = _posted(system, secret, pid, "full", COUNT, CLIENTS)
        with _server_alone(system) as pid:
            alone = _posted(system, secret, pid, "alone", COUNT, CLIENTS)
    return {"lone": lone, "full": full, "server": alone}


@contextlib.contextmanager
def _address(database: str) -> Iterator[dict[str, Any] | None]:
    """Have a database for a while; yield the variables that name it, or None where there is none."""
    if database == "sqlite":
        yield {}
        return
    binaries = postgres_binaries()
    if binaries is None:
        yield None
        return
    with postgres_server(binaries, durable=True) as url:
        yield {"DATABASE_URL": url}


def _secret(system: System) -> str:
    """Return a token of the administrator."""
    result = subprocess.run(
        [sys.executable, "manage.py", "kubeconfig", "--expires", "1d"],
        cwd=PROJECT, env=system.environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = re.search(r"token: (\S+)", result.stdout)
    assert found is not None, result.stdout
    return found[1]


@contextlib.contextmanager
def _server_alone(system: System) -> Iterator[int]:
    """Serve a stopped system's API, with nobody who reads its log; yield the server's process id."""
    with redis_server() as redis_url:
        environment = system.environment | {"VOLCANO_UI_REDIS_URL": redis_url}
        command = [sys.executable, "-m", "volcano_ui.apiserver"]
        with running(command, cwd=PROJECT, env=environment) as process:
            context = ssl.create_default_context(cafile=system.ca)
            ready = f"{system.api}/readyz"
            wait_until(lambda: urllib.request.urlopen(ready, context=context).close(), OSError)
            yield process.pid


def _posted(system: System, secret: str, pid: int, prefix: str, count: int, clients: int) -> dict[str, float]:
    """Have jobs posted; return the figures."""
    order = {
        "port": system.api_port,
        "ca": str(system.ca),
        "secret": secret,
        "path": JOBS_PATH,
        "body": json.dumps(shapes.job(NAME, 1, HOLD)),
        "prefix": prefix,
        "count": count,
        "clients": clients,
    }
    command = [sys.executable, "-m", "proof.benches.clients.posters"]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n", "the connections could not be opened"
        used = cpu_s(pid)
        report = json.loads(process.communicate("\n")[0])
        used = cpu_s(pid) - used
    latencies = report["latencies"]
    assert len(latencies) == count, f"{len(latencies)} of {count} were answered"
    return {
        "creations_per_s": round(count / report["took_s"]),
        "p50_ms": round(percentile(latencies, 0.5) * 1000, 2),
        "p99_ms": round(percentile(latencies, 0.99) * 1000, 2),
        "server_cpu_ms_each": round(1000 * used / count, 2),
        "clients_cpu_percent": round(100 * report["cpu_s"] / report["took_s"]),
    }
