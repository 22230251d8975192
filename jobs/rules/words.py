"""Lifecycle events, actions and plugins in plain words: one table for the form of the editor and the page of a job.

The names are Volcano's and stay visible beside the words (reference: volcano-job §3.1, §3.2, §5).
"""

from __future__ import annotations

from typing import NamedTuple

from kube.kinds.batch import Action, JobEvent


class EventWords(NamedTuple):
    """The event of a policy, as a clause after "when": for a job, and for one of its tasks.

    In `of_task`, `{task}` stands for the task; it is empty if no task's policy can get the event.
    """

    event: JobEvent
    of_job: str
    of_task: str


class ActionWords(NamedTuple):
    """What a policy does, as an instruction, and whether it makes sense in a policy at all."""

    action: Action
    description: str
    is_offered: bool = True


class ArgumentWords(NamedTuple):
    """An argument of a plugin as it is written, with its default, and what it sets."""

    written: str
    description: str


class PluginWords(NamedTuple):
    """A plugin in a line, and its arguments."""

    name: str
    description: str
    arguments: tuple[ArgumentWords, ...] = ()


EVENTS = (
    EventWords(JobEvent.POD_FAILED, "a pod fails", "a pod of {task} fails"),
    EventWords(JobEvent.POD_EVICTED, "a pod is evicted or deleted", "a pod of {task} is evicted or deleted"),
    EventWords(JobEvent.POD_PENDING, "a pod waits to start", "a pod of {task} waits to start"),
    EventWords(JobEvent.TASK_COMPLETED, "a task has completed", "{task} has completed"),
    EventWords(
        JobEvent.TASK_FAILED, "containers of a task restart too often", "containers of {task} restart too often"
    ),
    EventWords(JobEvent.UNKNOWN, "pods of the gang are lost and cannot be placed again", ""),
    EventWords(JobEvent.ANY, "any of these events happens", "any of these events happens to {task}"),
)
ACTIONS = (
    ActionWords(Action.RESTART_JOB, "restart the whole job"),
    ActionWords(Action.RESTART_TASK, "restart all pods of the task"),
    ActionWords(Action.RESTART_POD, "restart the pod"),
    ActionWords(Action.RESTART_PARTITION, "restart the pod's partition"),
    ActionWords(Action.ABORT_JOB, "suspend the job; it can be resumed"),
    ActionWords(Action.TERMINATE_JOB, "end the job as Terminated"),
    ActionWords(Action.COMPLETE_JOB, "end the job as Completed"),
    ActionWords(Action.RESUME_JOB, "resume the job, if it is suspended", is_offered=False),
)
_MASTER = ArgumentWords("--master=master", "the task that leads")
_WORKER = ArgumentWords("--worker=worker", "the task that works")
PLUGINS = (
    PluginWords("env", "Tells each container the number of its pod, in VC_TASK_INDEX and VK_TASK_INDEX."),
    PluginWords(
        "svc",
        "Gives each pod a name that the others find, and a list of all of them in /etc/volcano.",
        (
            ArgumentWords("--publish-not-ready-addresses=false", "names are found before a pod is ready"),
            ArgumentWords("--disable-network-policy=false", "pods of other jobs may connect too"),
            ArgumentWords("--inject-hosts-env=true", "the lists are also in variables VC_TASK_HOSTS and VC_TASK_NUM"),
        ),
    ),
    PluginWords(
        "ssh",
        "Lets the pods log in to each other by ssh without a password.",
        (
            ArgumentWords("--ssh-key-file-path=/root/.ssh", "the directory of the keys"),
            ArgumentWords("--ssh-port=22", "the port that clients use"),
            ArgumentWords("--ssh-private-key=…", "a key of your own; without it each run gets a new pair"),
            ArgumentWords("--ssh-public-key=…", "the public half of that key"),
        ),
    ),
    PluginWords(
        "pytorch",
        "Sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK for torch.distributed; brings svc.",
        (
            _MASTER,
            _WORKER,
            ArgumentWords("--port=23456", "the port of the master"),
            ArgumentWords("--wait-master-enabled=false", "workers wait until the master answers"),
            ArgumentWords("--wait-master-timeout=300", "for how many seconds they wait"),
            ArgumentWords("--wait-master-image=busybox:1.36.1", "the image of the container that waits"),
        ),
    ),
    PluginWords(
        "tensorflow",
        "Sets TF_CONFIG, which names all pods and the part of each; brings svc.",
        (
            ArgumentWords("--ps=ps", "the task of parameter servers"),
            _WORKER,
            ArgumentWords("--chief=chief", "the task that coordinates"),
            ArgumentWords("--evaluator=evaluator", "the task that evaluates"),
            ArgumentWords("--port=2222", "the port of every pod"),
        ),
    ),
    PluginWords(
        "mpi",
        "Gives the master the list of workers in MPI_HOST, for mpirun; brings svc and ssh.",
        (_MASTER, _WORKER, ArgumentWords("--port=22", "the port that ssh uses")),
    ),
    PluginWords(
        "ray",
        "Starts a Ray cluster: a head, and workers that join it; brings svc.",
        (
            ArgumentWords("--head=head", "the task of the head"),
            ArgumentWords("--headContainer=head", "its container, whose command is replaced"),
            _WORKER,
            ArgumentWords("--workerContainer=worker", "its container, whose command is replaced"),
            ArgumentWords("--port=6379", "the port that workers join at"),
            ArgumentWords("--dashboardPort=8265", "the port of Ray's dashboard"),
            ArgumentWords("--clientPort=10001", "the port of Ray clients"),
        ),
    ),
    PluginWords(
        "hcclrank", "Numbers the pods for Ascend devices, in the annotation hccl/rankIndex.", (_MASTER, _WORKER)
    ),
)
EVENT_WORDS: dict[str, EventWords] = {each.event: each for each in EVENTS}
ACTION_WORDS: dict[str, ActionWords] = {each.action: each for each in ACTIONS}
PLUGIN_WORDS = {each.name: each for each in PLUGINS}


def event_choices(*, of_task: bool) -> list[tuple[str, str]]:
    """Return the events that a policy of a job or a task may name, each with its words."""
    if of_task:
        return [(each.event, each.of_task.format(task="this task")) for each in EVENTS if each.of_task]
    return [(each.event, each.of_job) for each in EVENTS]


def event(name: str, task: str = "") -> str:
    """Return an event as a clause after "when", about a task if one is given; an event without words by its name."""
    words = EVENT_WORDS.get(name)
    if words is None:
        return f"{name} happens"
    return words.of_task.format(task=task) if task and words.of_task else words.of_job


def action(name: str) -> str:
    """Return an action as an instruction; an action without words by its name."""
    words = ACTION_WORDS.get(name)
    return words.description if words else name
