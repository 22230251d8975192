"""What the agent has the spawner run: one attempt of one container."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from node.shim import crilog

PROCESSES = 4096
FILES = 65536


class Bind(NamedTuple):
    """A directory or file of the host that appears at another path for the container.

    A source that names directories in `within` is a path of the machine that
    the pod chose; one without is the cluster's own.
    """

    source: str
    target: str
    read_only: bool = False
    below: str = ""  # what of the source appears: a relative path, which is made where it is missing
    within: tuple[str, ...] = ()  # it must lie below one of these directories
    make: str = ""  # what is made where there is nothing: "directory", "file" or nothing


class Action(NamedTuple):
    """Something that is done beside a container's command: one of a command, a request, a connection and a pause."""

    argv: tuple[str, ...] = ()
    host: str = ""
    port: int = 0
    path: str = ""  # of a request; empty: a connection is enough
    https: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    seconds: int = 0

    @property
    def url(self) -> str:
        """The address of a request."""
        return f"{'https' if self.https else 'http'}://{self.host}:{self.port}{self.path}"

    @classmethod
    def decode(cls, fields: list[Any]) -> Action:
        """Return the action that was sent as JSON."""
        action = cls(*fields)
        headers = tuple((str(name), str(value)) for name, value in action.headers)
        return action._replace(argv=tuple(action.argv), headers=headers)


class Ids(NamedTuple):
    """Users, and likewise groups, of a container that are users of its machine: so many from the first ones on."""

    inside: int
    outside: int
    size: int


class Group(NamedTuple):
    """The control group of a container, which binds its memory and processes, too."""

    path: str  # it is made there
    cpu_weight: int
    cpu_quota_us: int = 0  # of each tenth of a second; 0: no limit
    cpuset: bool = False  # whether it may be bound to processors


class Wall(NamedTuple):
    """Which layers there are between a container and the rest of its machine, as was found by trying."""

    # Who gives containers a root directory of their own: "root", a "user" in a user namespace, or "none".
    mounts: str = "none"
    landlock: int = 0  # the ABI; 0: none
    seccomp: bool = False  # a filter of system calls
    pids: bool = False  # with mounts: processes of its own, and memory that they share, in namespaces
    root: bool = False  # whether root starts containers
    networks: str = ""  # which networks of their own containers may have: "closed", "open" ones, or "" for none
    old: bool = False  # without mounts: whether the kernel lacks what it takes for them, for any user
    closed: bool = False  # whether containers are to have a network without a way out, or not to run

    def encode(self) -> str:
        """Return the layers as text."""
        return json.dumps(self)

    @classmethod
    def decode(cls, text: str) -> Wall:
        """Return the layers that encode() wrote."""
        return cls(*json.loads(text))


class Image(NamedTuple):
    """That a command runs in a container of an engine (podman, docker), made from an image; see `node.shim.contained`."""

    engine: tuple[str, ...]  # its program, with the options that it needs on this machine
    kind: str  # "podman" or "docker"
    id: str  # the image that runs: it is there
    name: str  # of the container
    options: tuple[str, ...] = ()  # of `create`, without environment and mounts
    env: dict[str, str] = {}  # of the engine's own program
    reference: str = ""  # the image in the container's status
    stages: bool = False  # whether mounts that the shim makes are seen by the engine
    filters: bool = False  # whether it is given the filter of system calls that processes have


class Order(NamedTuple):
    """One attempt: everything the shim needs, so that it needs nobody later."""

    directory: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    node: str = ""  # its machine's name as a node, for messages
    key: str = ""  # what requests at its control socket have to have
    streak: int = 0  # how many attempts in a row ended early; the shim records it for the next agent
    mounts: str = "none"  # whether it has a root directory of its own: see Wall
    pids: bool = False  # with mounts: whether it has namespaces of processes, too
    binds: tuple[Bind, ...] = ()  # without mounts: what it reaches by the sources' own paths
    network: str = ""  # the namespace whose network it is in; "": the machine's
    state: str = ""  # the state directory, which is nothing to a container
    shared_memory: int = 0  # bytes of its own /dev/shm; 0: a little
    ids: tuple[Ids, ...] = ()  # with mounts of root: who its users are on the machine
    user: tuple[int, int, list[int]] | None = None  # whom its command becomes, inside: user, group, other groups
    # The ABI by which it reaches only what is named here and what all programs need; 0: it is not used.
    landlock: int = 0
    read: tuple[str, ...] = ()  # more that it may read and execute
    devices: tuple[str, ...] = ()  # files of /dev that it has to itself ...
    withheld: tuple[str, ...] = ()  # ... and those that others have or may get
    seccomp: bool = False
    memory_bytes: int = 0  # 0: no limit
    cpus: int = 0  # how many processors the command may use; 0: all
    processes: int = PROCESSES
    files: int = FILES
    group: Group | None = None  # None: the shim counts what the container uses
    grace_s: float = 30.0
    stdin: bool = False  # its standard input stays open for those who attach ...
    stdin_once: bool = False  # ... until the first of them goes
    tty: bool = False
    image: Image | None = None  # None: a process of this machine. Else argv are the words after the image
    post_start: Action | None = None  # done after the command's start, which counts when this has succeeded
    pre_stop: Action | None = None  # done before the command is asked to end
    segment_bytes: int = crilog.SEGMENT_BYTES
    segments: int = crilog.SEGMENTS

    def encode(self) -> bytes:
        """Return the order as it travels."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, data: bytes) -> Order:
        """Return the order that encode() made."""
        fields = json.loads(data)
        fields["binds"] = tuple(Bind(*bind)._replace(within=tuple(bind[4])) for bind in fields["binds"])
        for name in ("read", "devices", "withheld"):
            fields[name] = tuple(fields[name])
        fields["ids"] = tuple(Ids(*each) for each in fields["ids"])
        if fields["group"]:
            fields["group"] = Group(*fields["group"])
        if image := fields["image"]:
            engine, kind, id_, name, options, *rest = image
            fields["image"] = Image(tuple(engine), kind, id_, name, tuple(options), *rest)
        for name in ("post_start", "pre_stop"):
            fields[name] = Action.decode(fields[name]) if fields[name] else None
        return cls(**fields)
