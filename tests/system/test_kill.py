"""kill -9 at random moments of everything that the supervisor keeps, while many jobs run; in-place that of both systems."""

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from cluster.remote import outbox
from kube.resources import JOBS
from proof import invariants
from proof.harness.waiting import HANG_S, until
from proof.systems.work import FINISHED, Person, Watcher, job, shell, task
from tests.campaign import scaled
from tests.system.pair import installed

COUNTS = {"embedded": scaled(100, 200), "in-place": scaled(40, 80)}  # jobs; elsewhere each takes a dozen requests
KILLS = scaled(36, 72)
BETWEEN_S = (0.2, 1.2)
# Whoever dies sooner is restarted later and later: most are left to work for this long, some are hit while they start.
GROWN_S = 5.2
YOUNG_SHARE = 0.15
SIMULATED = {"ui.volcano.sh/simulated": "true"}


@pytest.mark.campaign
@pytest.mark.system
@pytest.mark.both_modes
def test_nothing_is_lost_or_doubled_whatever_is_killed(system_mode, tmp_path, capsys):
    seed = int(os.environ.get("KILL_SEED") or random.SystemRandom().randrange(10**6))
    with capsys.disabled():
        sys.stdout.write(f"\nKILL_SEED={seed} ")
    ran = tmp_path / "out" / "ran"
    # Logged in before anybody is killed: a link that logs in is good for once.
    with installed(system_mode, tmp_path, nodes=3) as system, system.cluster.store() as store, Person(system) as person:
        jobs, watcher = list(small_jobs(ran, random.Random(seed), COUNTS[system_mode])), Watcher(store)
        submitting = threading.Thread(target=lambda: [person.insist(each) for each in jobs])
        submitting.start()
        kill(system, random.Random(seed + 1))
        submitting.join(HANG_S)
        assert not submitting.is_alive(), "not every job could be submitted"
        until(lambda: finished(watcher) == len(jobs), every_s=0.5, what="the end of every job")
        with system.store() as own:
            until(lambda: not outbox.cursors(own.using), what="the last answer")
        check(watcher, jobs, ran, by_requests=system.cluster is not system)


def small_jobs(ran, choices, number_of_jobs):
    """Single pods and gangs; most with real processes that write down who they are, some simulated."""
    for number in range(number_of_jobs):
        count = choices.choice((1, 1, 1, 2, 3))
        if number % 5 == 0:
            note = {"ui.volcano.sh/duration-seconds": str(choices.choice((1, 2)))}
            made = task(["true"], replicas=count * 2, cpu="6", annotations=note, nodeSelector=SIMULATED)
        else:
            script = f'echo "$POD" >> {ran}; sleep 0.{choices.randrange(1, 9)}'
            made = shell(script, sees=ran.parent, replicas=count, cpu="100m", memory="8Mi")
            (container,) = made["template"]["spec"]["containers"]
            container["env"] = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
        yield job(f"k{number}", made)


def kill(system, choices):
    killed = 0
    while killed < KILLS:
        time.sleep(choices.uniform(*BETWEEN_S))  # the random moment
        young = choices.random() < YOUNG_SHARE
        victims = [pid for pid in processes(system) if young or age_s(pid) > GROWN_S]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(choices.choice(victims), signal.SIGKILL)
                killed += 1


def processes(system):
    """The ids of all that is kept by supervisors, those of the cluster first, in the order of their names."""
    supervisors = dict.fromkeys((system.cluster, system))
    pids = [pid for each in supervisors for _, pid in sorted(each.children().items())]
    return [*pids, *(pid for each in supervisors if (pid := each.fork_server()))]


def age_s(pid):
    """Return for how long a process has been running."""
    try:
        began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def finished(watcher):
    counts = watcher.store.count(JOBS)
    return sum(counts.get(phase, 0) for phase in FINISHED)


def check(watcher, jobs, ran, *, by_requests):
    statuses = {each["metadata"]["name"]: watcher.job(each["metadata"]["name"])["status"] for each in jobs}
    wanted = {each["metadata"]["name"]: each["spec"]["minAvailable"] for each in jobs}
    ended = {name: (status["state"]["phase"], status.get("succeeded", 0)) for name, status in statuses.items()}
    wrong = {name: statuses[name] for name, end in ended.items() if end != ("Completed", wanted[name])}
    assert not wrong
    twice = {uid: count for uid, count in Counter(ran.read_text().split()).items() if count > 1}
    assert not twice, f"pods ran twice: {twice}"
    invariants.check(watcher.everything(), by_requests=by_requests)
