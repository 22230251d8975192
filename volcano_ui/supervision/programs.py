"""Which programs an `up` starts, by VOLCANO_UI_ONLY and by the kind of cluster behind the pages."""

from __future__ import annotations

import math
import socket
import sys

from django.conf import settings

from cluster.runtime import registry
from node.leftovers import AtStop
from volcano_ui.supervision.supervisor import Program

# The agent's files are for pods, with the modes that they have in a container; they lie below a directory of mode 0700.
POD_UMASK = 0o022
# How long the agent may take to stop, by what it does with running pods.
PATIENCE_S = {AtStop.LEAVE: 3.0, AtStop.WAIT: math.inf, AtStop.END: 5.0}
MANAGE = (sys.executable, str(settings.BASE_DIR / "manage.py"))


def lasting(pages: socket.socket, api: socket.socket | None, webhooks: socket.socket | None) -> list[Program]:
    """Return the programs that run beside Redis for as long as `up` does.

    With a socket for the API they include those of an embedded cluster, with one for webhooks the server of these.
    The agent ends first, so that the API server still takes the reports about pods which end with it.
    """
    programs = [] if settings.ONLY == "works" else [_server("web", "volcano_ui.web", pages)]
    if webhooks is not None:
        programs.append(_server("webhooks", "volcano_ui.webhooks", webhooks))
    if api is None:
        return programs
    programs += [
        *_workers(),
        _server("apiserver", "volcano_ui.apiserver", api),
        # If it is killed with its supervisor, the next agent takes over its pods.
        Program(
            "agent",
            [*MANAGE, "agent"],
            stage=0,
            patience_s=PATIENCE_S[AtStop(settings.RUNNING)],
            gives_signs=True,
            umask=POD_UMASK,
            may_fork=True,
        ),
    ]
    if settings.NODES:
        command = [*MANAGE, "simulator", f"--nodes={settings.NODES}"]
        programs.append(Program("simulator", command, stage=0, gives_signs=True, may_fork=True))
    return programs


def works() -> list[Program]:
    """Return the programs for another cluster, which run in one `up` of an installation at a time."""
    return [*_workers(), Program("mirror", [*MANAGE, "mirror"], stage=1, gives_signs=True, may_fork=True)]


def _workers() -> list[Program]:
    workers = [
        Program(queue, [*MANAGE, "worker", queue], stage=2, gives_signs=True, may_fork=True)
        for queue in registry.queues()
    ]
    return [*workers, Program("beat", [*MANAGE, "beat"], stage=1, gives_signs=True, may_fork=True)]


def _server(name: str, module: str, listener: socket.socket) -> Program:
    command = [sys.executable, "-m", module, f"--fd={listener.fileno()}"]
    return Program(name, command, 1, 3, descriptors=(listener.fileno(),), gives_signs=True, may_fork=True)
