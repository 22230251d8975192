"""The templates that come with the product; each runs on this machine where its programs are installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jobs.parameterized.parameters import WHOLE, Parameter
from jobs.sweeps import placeholders
from jobs.sweeps.placeholders import Template

FOLDER = Path(__file__).parent / "yaml"
_QUEUE = Parameter("queue", "The queue that the job waits in", "default")
_WORKERS = Parameter("workers", "How many workers there are", "2", WHOLE)
_EXECUTORS = Parameter("executors", "How many executors there are", "3", WHOLE)
_STEPS = Parameter("steps", "How many steps it learns", "200", WHOLE)
_RATE = Parameter("rate", "The learning rate", "0.1")


def _port(default: str) -> Parameter:
    return Parameter("port", "A port that is free; jobs on one machine at a time need different ones", default, WHOLE)


@dataclass(frozen=True)
class Builtin:
    """A template: its title, what it shows when it runs, what it needs, and its parameters."""

    slug: str
    title: str
    text: str
    needs: str
    icon: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def yaml(self) -> str:
        return (FOLDER / f"{self.slug}.yaml").read_text()

    @cached_property
    def template(self) -> Template:
        return placeholders.read(self.yaml)

    @property
    def defaults(self) -> dict[str, str]:
        return {each.name: each.default for each in self.parameters}


_ALL = (
    Builtin(
        "mpi",
        "MPI",
        "A master starts a program on all workers with mpirun, over ssh between the pods.",
        "Debian's openssh-server and openmpi-bin, and root.",
        "workflow",
        (
            _WORKERS,
            Parameter(
                "program",
                "What mpirun starts on each worker",
                "sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'",
            ),
            _port("2222"),
            _QUEUE,
        ),
    ),
    Builtin(
        "pytorch",
        "PyTorch",
        "A master and its workers learn a line together, with DistributedDataParallel.",
        "Debian's python3-torch.",
        "zap",
        (_WORKERS, _RATE, _STEPS, _port("23456"), _QUEUE),
    ),
    Builtin(
        "tensorflow",
        "TensorFlow",
        "Workers learn a line together, each from its own part of the data.",
        "The Python package tensorflow or tensorflow-cpu.",
        "layers",
        (_WORKERS, _RATE, _STEPS, _QUEUE),
    ),
    Builtin(
        "ray",
        "Ray",
        "A head and workers form a cluster of Ray, and a driver runs a task on each of them.",
        "The Python package ray[default].",
        "boxes",
        (_WORKERS, _QUEUE),
    ),
    Builtin(
        "spark",
        "Spark",
        "A driver with a master of its own hands parts to executors, which throw darts to find pi.",
        "The Python package pyspark, and Java 17 or newer.",
        "sparkles",
        (
            _EXECUTORS,
            Parameter("throws", "How many darts each executor throws", "200000", WHOLE),
            _port("7078"),
            _QUEUE,
        ),
    ),
    Builtin(
        "driver-and-executors",
        "Driver and executors",
        "The shape of many jobs in plain Python: a driver hands out parts, executors count primes in them.",
        "Python alone.",
        "list-tree",
        (_EXECUTORS, Parameter("parts", "Into how many parts the work is cut", "12", WHOLE), _port("7077"), _QUEUE),
    ),
)
BUILTINS: dict[str, Builtin] = {each.slug: each for each in _ALL}
