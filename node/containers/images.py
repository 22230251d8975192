"""The images of this machine's containers: present, pulled or waited for, as with a kubelet.

An engine takes seconds to minutes to pull, so its program runs in threads.
The agent calls `image_for` before each start and is woken when something has
changed; for an image that is not there it raises `ImageWaits` with a kubelet's
reason. Pods that wait for the same image wait for one pull.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from cluster import clock
from kube.kinds.core import Container, EventType, Pod
from kube.kinds.pod import PullPolicy
from node.containers.engines import Engine, environment
from node.pods import events
from node.pods.environment import Lookup
from node.pods.events import ContainerEvent
from node.rules import image_names
from node.shim.contained import problem

PARALLEL = 3  # pulls at a time, and likewise inspections
FRESH_FAILURE_S = 2.0  # for how long a status has the failure itself, before ImagePullBackOff
OUTPUT_LINES = 20  # of an engine's output that are retained
AUTHS = ".dockerconfigjson"  # the key of a Secret of type kubernetes.io/dockerconfigjson
ContainerKey = tuple[str, str, str]  # a pod's uid, a container's name, and which list of the spec has it
log = logging.getLogger(__name__)


class ImageWaits(Exception):
    """A container's image is not there; reason is a kubelet's."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class LocalImage(NamedTuple):
    """An image on this machine."""

    id: str
    reference: str  # as statuses name it: by its digest in its registry where it has one
    size: int = 0
    user: str = ""


@dataclass(slots=True)
class _Pull:
    """One image that is looked for or pulled, for all containers with the same policy and credentials."""

    image: str
    policy: PullPolicy
    auths: dict[str, Any]
    waiters: dict[ContainerKey, None] = field(default_factory=dict)
    running: bool = False
    progress: str = ""
    failures: int = 0
    failed_at: float = 0.0
    reason: str = ""
    why: str = ""
    backing_off: set[ContainerKey] = field(default_factory=set)  # who has been told that the next try is waited for
    process: subprocess.Popen[bytes] | None = None  # that pulls it

    def end(self) -> None:
        """Have the program that pulls it end, if one does."""
        if self.process is not None:
            self.process.terminate()

    def due(self) -> float:
        """Return when the next try may be."""
        # With the policy Never only a local build can bring the image, so there is no reason to wait ever longer.
        failures = 1 if self.policy is PullPolicy.NEVER else self.failures
        return self.failed_at + image_names.back_off_s(failures) if self.failures else 0.0


class _Report(NamedTuple):
    """What a thread reports of a pull: an event, or its end with an image or the reason why there is none."""

    key: str
    reason: str
    message: str
    image: LocalImage | None = None
    over: bool = False


class Images:
    """The images that containers on this machine ask for; `wake` is called in another thread when there is something new.

    folder is where credentials are written while a pull takes: no pod reaches it.
    """

    def __init__(self, engine: Engine, lookup: Lookup, wake: Callable[[], None], folder: Path) -> None:
        self._engine = engine
        self._lookup = lookup
        self._wake = wake
        self._folder = folder
        shutil.rmtree(folder, ignore_errors=True)  # of an agent that was killed while it pulled
        self._pulls: dict[str, _Pull] = {}
        self._granted: dict[ContainerKey, tuple[str, LocalImage]] = {}  # with the name that was asked for
        self._events: dict[str, list[ContainerEvent]] = {}  # by pod
        self._invalid_names: set[ContainerKey] = set()
        self._reports: SimpleQueue[_Report] = SimpleQueue()
        self._inspect_slots = threading.Semaphore(PARALLEL)
        self._pull_slots = threading.Semaphore(PARALLEL)
        self._is_over = False

    def image_for(self, pod: Pod, container: Container) -> LocalImage:
        """Return the image that a container is about to start from; ImageWaits while it has none.

        Each start resolves the image again, as policy or image may have changed. The result stays until `started`.
        """
        container_key = _key(pod, container)
        name, image = self._granted.get(container_key, ("", None))
        if image is not None and name == container.image:  # else the pod was given another one meanwhile
            return image
        try:
            name, policy = image_names.parse(container.image).whole, image_names.policy(container)
        except image_names.InvalidImageName as error:
            if container_key not in self._invalid_names:
                self._invalid_names.add(container_key)
                self._add_event(container_key, EventType.WARNING, "InspectFailed", str(error))
            raise ImageWaits("InvalidImageName", str(error)) from None
        auths = self._auths(pod)
        key = hashlib.sha256(json.dumps([container.image, policy, auths]).encode()).hexdigest()
        pull = self._pulls.setdefault(key, _Pull(container.image, policy, auths))
        pull.waiters[container_key] = None
        now = clock.monotonic()
        if not pull.running and now >= pull.due():
            pull.running, pull.progress = True, ""
            threading.Thread(target=self._work, args=(key, pull, name), name="pull", daemon=True).start()
        if pull.running and not pull.failures:
            raise ImageWaits("ContainerCreating", pull.progress)
        raise self._failed(container_key, pull, now)

    def started(self, pod: Pod, container: Container) -> None:
        """Note that a container was started: its next start resolves the image again."""
        self._granted.pop(_key(pod, container), None)

    def take_changed(self) -> set[str]:
        """Return the pods for which something has changed since the last call."""
        changed: set[str] = set()
        while not self._reports.empty():
            report = self._reports.get()
            pull = self._pulls.get(report.key)
            if pull is None:
                continue
            changed |= {uid for uid, *_ in pull.waiters}
            if report.over:
                self._end(pull, report)
            else:
                for container_key in pull.waiters:
                    self._add_event(container_key, EventType.NORMAL, report.reason, report.message)
        return changed

    def events(self, uid: str) -> list[ContainerEvent]:
        """Return a pod's new events, each once."""
        return self._events.pop(uid, [])

    def forget(self, uid: str) -> None:
        """Drop a pod's state, and end pulls that it alone has waited for: one that hangs must not hold its slot."""
        self._events.pop(uid, None)
        self._invalid_names = {container_key for container_key in self._invalid_names if container_key[0] != uid}
        self._granted = {
            container_key: image for container_key, image in self._granted.items() if container_key[0] != uid
        }
        for key, pull in list(self._pulls.items()):
            pull.waiters = {container_key: None for container_key in pull.waiters if container_key[0] != uid}
            if pull.waiters:
                continue
            if pull.running:
                pull.end()
            else:
                del self._pulls[key]

    def stop(self) -> None:
        """End what is being pulled; the next agent begins again."""
        self._is_over = True  # who waits for a turn does not begin
        for pull in list(self._pulls.values()):
            pull.end()

    def _end(self, pull: _Pull, report: _Report) -> None:
        pull.running = False
        if report.image is not None:
            self._granted |= dict.fromkeys(pull.waiters, (pull.image, report.image))
        if report.image is not None or not pull.waiters:
            del self._pulls[report.key]
            return
        pull.failures += 1
        pull.failed_at, pull.reason, pull.why = clock.monotonic(), report.reason, report.message
        pull.backing_off.clear()
        event = "Failed", pull.why[:1].upper() + pull.why[1:]
        if pull.reason == "ErrImageNeverPull":
            event = pull.reason, pull.why
        for container_key in pull.waiters:
            self._add_event(container_key, EventType.WARNING, *event)
            self._add_event(container_key, EventType.WARNING, "Failed", f"Error: {pull.reason}")

    def _failed(self, container_key: ContainerKey, pull: _Pull, now: float) -> ImageWaits:
        if pull.policy is PullPolicy.NEVER or now < pull.failed_at + FRESH_FAILURE_S:
            return ImageWaits(pull.reason, pull.why)
        message = f'Back-off pulling image "{pull.image}"'
        if container_key not in pull.backing_off:
            pull.backing_off.add(container_key)
            self._add_event(container_key, EventType.NORMAL, "BackOff", message)
        return ImageWaits("ImagePullBackOff", f"{message}: {pull.reason}: {pull.why}")

    def _add_event(self, container_key: ContainerKey, kind: EventType, reason: str, message: str) -> None:
        uid, container, listed = container_key
        self._events.setdefault(uid, []).append(ContainerEvent(listed, container, reason, message, kind))

    def _auths(self, pod: Pod) -> dict[str, Any]:
        """Return the credentials that the pod brings, by registry; secrets that are missing are left out, as by a kubelet."""
        auths: dict[str, Any] = {}
        for reference in pod.spec.image_pull_secrets:
            values: Mapping[str, bytes] = self._lookup.secret(pod.metadata.namespace, reference.name) or {}
            try:
                registries = json.loads(values.get(AUTHS, b"{}"))["auths"]
            except (ValueError, LookupError, TypeError):
                continue
            auths = {**registries, **auths} if isinstance(registries, dict) else auths
        return auths

    # In a thread for each pull.

    def _work(self, key: str, pull: _Pull, name: str) -> None:
        try:
            report = self._obtain(key, pull, name)
        except Exception as error:
            # Whatever it is: the containers that wait for the image have to get a result.
            log.exception("image %s", pull.image)
            report = _Report(key, "ErrImagePull", str(error), over=True)
        self._report(report)

    def _report(self, report: _Report) -> None:
        self._reports.put(report)
        self._wake()

    def _obtain(self, key: str, pull: _Pull, name: str) -> _Report:
        """Look for an image, pull it where its policy says so, and return what became of that."""
        if pull.policy is not PullPolicy.ALWAYS and (image := self._find(self._names(pull.image, name), name)):
            self._report(_Report(key, "Pulled", f'Container image "{pull.image}" already present on machine'))
            return _Report(key, "", "", image, over=True)
        if pull.policy is PullPolicy.NEVER:
            problem = f'Container image "{pull.image}" is not present with pull policy of Never'
            return _Report(key, "ErrImageNeverPull", problem, over=True)
        with self._pull_slots:  # not before: what is here must not wait for what is pulled
            began = time.monotonic()
            pull.progress = f'Pulling image "{pull.image}"'
            self._report(_Report(key, "Pulling", pull.progress))
            problem = self._pull(pull, name) if self._is_wanted(pull) else "nobody waits for it any more"
        if problem:
            return _Report(key, "ErrImagePull", f'failed to pull image "{pull.image}": {problem}', over=True)
        pulled = self._find((name,), name)
        if pulled is None:
            return _Report(key, "ErrImagePull", f'image "{pull.image}" was pulled and is gone', over=True)
        duration = f"{time.monotonic() - began:.3g}s"
        message = f'Successfully pulled image "{pull.image}" in {duration}. Image size: {pulled.size} bytes.'
        self._report(_Report(key, "Pulled", message))
        return _Report(key, "", "", pulled, over=True)

    def _is_wanted(self, pull: _Pull) -> bool:
        return bool(pull.waiters) and not self._is_over

    def _names(self, text: str, name: str) -> list[str]:
        """Return under which whole names an image may be here.

        Podman takes a short name for that of any image that ends with it, whichever registry a pod had it pulled from.
        """
        built = image_names.built(text) if self._engine.kind == "podman" else ""
        return [built, name] if built else [name]

    def _find(self, names: Iterable[str], name: str) -> LocalImage | None:
        """Return an image that is here under one of these names."""
        for each in names:
            argv = [*self._engine.program, "image", "inspect", each]
            with self._inspect_slots:
                inspected = subprocess.run(argv, capture_output=True, env=environment(), check=False)  # noqa: S603 - the engine that was found
            if inspected.returncode == 0:
                return _local_image(json.loads(inspected.stdout)[0], name)
        return None

    def _pull(self, pull: _Pull, name: str) -> str:
        """Pull an image; return why that cannot be done, "" when it was."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            code, output = self._run_pull(
                pull, [*self._engine.program, *self._pull_arguments(pull.auths, folder), name]
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # the next agent may have removed it
        return problem(output) if code else ""

    def _pull_arguments(self, auths: dict[str, Any], folder: Path) -> list[str]:
        """Return the arguments of a pull, with credentials in a file that nobody else can read."""
        if not auths:
            return ["pull"]
        file = folder / "config.json"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump({"auths": auths}, stream)
        if self._engine.kind == "podman":
            return ["pull", "--authfile", str(file)]
        return ["--config", str(folder), "pull"]

    def _run_pull(self, pull: _Pull, argv: list[str]) -> tuple[int, str]:
        """Run a pull to its end; return its exit code and the last lines of its output."""
        tail: list[str] = []
        layers = 0
        with subprocess.Popen(  # noqa: S603 - the engine that was found
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment()
        ) as process:
            pull.process = process
            if not self._is_wanted(pull):  # who asked for it went while the program began
                pull.end()
            for line in process.stdout or ():
                text = line.decode(errors="replace").rstrip()
                tail = [*tail, text][-OUTPUT_LINES:]
                if "Copying blob" in text or "Pulling fs layer" in text:
                    layers += 1
                    pull.progress = f'Pulling image "{pull.image}": {layers} layer{"s" if layers > 1 else ""} so far'
        pull.process = None
        return process.returncode, "\n".join(tail)


def _key(pod: Pod, container: Container) -> ContainerKey:
    return pod.metadata.uid, container.name, events.listed(pod, container.name)


def _local_image(inspected: dict[str, Any], name: str) -> LocalImage:
    """Return an image from what an engine's `inspect` returned."""
    id_ = str(inspected["Id"])
    repository = image_names.parse(name).repository
    digests = [str(each) for each in inspected.get("RepoDigests") or ()]
    reference = next((each for each in digests if each.startswith(f"{repository}@")), "")
    user = str((inspected.get("Config") or {}).get("User") or "")
    id_ = id_ if id_.startswith("sha256:") else f"sha256:{id_}"
    return LocalImage(id_, reference or id_, int(inspected.get("Size") or 0), user)
