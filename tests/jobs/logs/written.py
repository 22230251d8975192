"""Logs on disk as the node writes them, and what readers get of them."""

import contextlib
import zipfile
from io import BytesIO

from asgiref.sync import async_to_sync
from django.conf import settings

from cluster import access
from cluster.store import Create, Delete, store
from jobs.pages.logs.follow import Reader
from kube.resources import PODS
from node.shim.crilog import CriLog
from tests.jobs.pages import world


def log_of(uid, attempt=0, *, container="main", entries=(), **options):
    """Return the directory of an attempt and its log, which begins with lines of given times."""
    directory = settings.DATA / "node" / "pods" / uid / container / str(attempt)
    directory.mkdir(parents=True)
    log = CriLog(str(directory), **options)
    for time, data in entries:
        log._write(f"{stamp(time)} stdout F {data}\n".encode())
    return directory, log


def running(task="worker", index=0, **more):
    return {"task": task, "index": index, "scheduled": world.START, "started": world.START, **more}


class Gang:
    """A job whose pods print, and who reads that."""

    def __init__(self, user, job):
        self.user, self.job = user, job
        self.uid = {pod.name.removeprefix(f"{job.name}-"): pod.uid for pod in store.find(PODS, owner=job.uid)}

    def prints(self, name, *entries, attempt=0):
        """Have a pod begin a log with lines of given times; return it."""
        return log_of(self.uid[name], attempt, entries=entries)[1]

    def read(self, pod="*", **params):
        query = {"namespace": self.job.namespace, "job": self.job.name, "of": self.job.uid, "pod": pod, **params}
        return Reader(access.for_user(self.user), query)

    def replace(self, name, task="worker", index=0):
        if name in self.uid:
            store.write(Delete(PODS, self.job.namespace, f"{self.job.name}-{name}", grace=0))
        (new,) = store.write(Create(PODS, world.pod_object(self.job, **running(task, index))))
        self.uid[name] = new.uid


def stamp(second):
    return f"2026-11-01T00:00:{second:09.6f}Z"


def texts(message):
    """Return the lines of a message, of each what is new."""
    of_lines = (line[3] for line in message["lines"])
    return [content if isinstance(content, str) else "".join(run[0] for run in content) for content in of_lines]


def read(reader):
    found = []
    while message := reader.poll():
        found += texts(message)
    return found


def body(response):
    async def read():
        async with contextlib.aclosing(response.streaming_content) as parts:
            return b"".join([part async for part in parts])

    return async_to_sync(read)()


def unpacked(response):
    assert response["Content-Type"] == "application/zip"
    with zipfile.ZipFile(BytesIO(body(response))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}
