"""Celery: one worker process for each queue that a consumer runs on, and a clock.

The work of a task run is in the database (cursors, timers); a message is only a hint
that there is something to read. Every choice here follows from that:

* Messages are acknowledged before the run. A run that is killed is repeated from its cursor at the
  next tick; late acknowledgement would repeat it an hour later, when Redis shows the message again.
* There are no results, no events and no heartbeats: nobody would read them.
* One message is taken at a time. Prefetched ones would wait behind the current run of one process.
* A worker tries to reach a lost broker every second, for ever. Publishing gives up at once, so that
  a commit while Redis is away does not wait for it.
"""

from __future__ import annotations

import functools
import os
import signal
import warnings
from typing import Any

import structlog
from celery import Celery, signals
from celery.app.amqp import AMQP
from celery.platforms import SecurityWarning
from kombu.connection import Connection as KombuConnection
from kombu.entity import Queue

from cluster.runtime import registry
from volcano_ui import collector

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")

# Celery warns root of pickle, which is not accepted here.
warnings.filterwarnings("ignore", category=SecurityWarning)


class Connection(KombuConnection):
    """A broker connection that is restored within a second after its broker; kombu waits up to thirty."""

    def _ensure_connection(self, *args: Any, **options: Any) -> Any:
        waits = {"interval_start": 0.2, "interval_step": 0.2, "interval_max": 1.0}
        return super()._ensure_connection(*args, **{**waits, **options})


class Messages(AMQP):
    """Celery's messaging with the patient connection, and the queues of the consumers that run."""

    Connection = Connection

    @functools.cached_property
    def queues(self) -> Any:
        """Return the queues; called only after the applications have registered their consumers."""
        return self.Queues([Queue(name) for name in registry.queues()])


app = Celery("volcano_ui", amqp=Messages)
app.conf.update(
    accept_content=["json"],
    task_create_missing_queues=False,
    task_ignore_result=True,
    task_acks_late=False,
    task_publish_retry=False,
    task_track_started=False,
    worker_prefetch_multiplier=1,
    worker_pool="solo",
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    # Nothing is acknowledged late or prefetched, so these two only keep Celery from warning about them.
    worker_cancel_long_running_tasks_on_connection_loss=True,
    worker_enable_prefetch_count_reduction=False,
    beat_scheduler="volcano_ui.beat:Clock",
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # The connection to the database outlives a run; `refresh_connections` replaces a broken one.
    db_reuse_max=1_000_000_000,
)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Stop Celery from setting up logging of its own: Django has done it."""


@signals.celeryd_init.connect
def lead_by_name(sender: str, **_: Any) -> None:
    """Hold leases under the worker's name: one that is started again goes on at once, whatever its process id."""
    os.environ.setdefault("VOLCANO_UI_WORKER", sender)


@signals.beat_init.connect
def end_beat_at_once(**_: Any) -> None:
    """Let a signal end beat at once: it has nothing to save, and Python's own end takes seconds under load."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@signals.worker_init.connect
def keep_connections(**_: Any) -> None:
    """Let a worker process keep its database connection, and with it SQLite's page cache."""
    from django.db import connections

    for connection in connections.all():
        connection.settings_dict["CONN_MAX_AGE"] = None


@signals.worker_init.connect
def collect_garbage_rarely(**_: Any) -> None:
    """Let the collector run less often over the tens of thousands of small objects that consumers keep."""
    collector.collect_rarely()


@signals.task_prerun.connect
def refresh_connections(task_id: str, task: Any, **_: Any) -> None:
    """Start a run with a database connection that works, and its name in every log line."""
    from django.db import close_old_connections

    close_old_connections()
    structlog.contextvars.bind_contextvars(run=task_id, task_name=task.name)


@signals.task_postrun.connect
def forget_run(**_: Any) -> None:
    """Remove the run's name from the log lines that follow."""
    structlog.contextvars.clear_contextvars()
