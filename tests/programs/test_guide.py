"""The jobs of docs/how-to/job-plugins.md, run as they are printed there, with the programs that they are written for."""

import re

import pytest
from django.conf import settings

from proof.harness.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]
GUIDE = settings.BASE_DIR / "docs" / "how-to" / "job-plugins.md"
ENDED = ("Completed", "Failed", "Aborted", "Terminated")
LONG_S = 300  # Ray starts some fifty processes, on two processors that others may use as well


def printed(name):
    """Return the one job of the guide that has a name."""
    jobs = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (found,) = [text for text in jobs if f"\n  name: {name}\n" in text]
    return found


def logs(person, watcher, name):
    """Return what the pods of a job have said, by the last two parts of their names."""
    found = {}
    for pod in watcher.pods(name):
        answer = person.get(f"/jobs/default/{name}/log/", pod=pod)
        found[pod.removeprefix(f"{name}-")] = answer.text if answer.status_code == 200 else ""
    return found


@pytest.fixture
def completed(person, watcher):
    """Run a job of the guide to its end, and return what its pods have said."""

    def run(name):
        person.create(printed(name))
        until(lambda: watcher.phase(name) in ENDED, LONG_S, what=f"the end of {name}")
        output = logs(person, watcher, name)
        assert watcher.phase(name) == "Completed", (watcher.state(name), output)
        return output

    return run


@pytest.mark.needs("mpirun", "sshd", "mpi4py")
def test_mpi_sends_messages_between_two_workers(completed):
    output = completed("ring")["master-0"]
    lines = sorted(re.findall(r"^rank .*", output, re.MULTILINE))
    assert lines == [f"rank {n} of 2 heard of rank {1 - n}; all ranks add up to 1" for n in (0, 1)], output


@pytest.mark.needs("ray")
def test_ray_runs_tasks_in_every_pod_of_its_cluster(completed):
    output = completed("parts")["driver-0"]
    assert "in parts-head-0 parts-worker-0 parts-worker-1 the sum is 4498500" in output


@pytest.mark.needs("tensorflow")
def test_tensorflow_trains_in_two_workers_together(completed):
    outputs = completed("mirrored")
    for number in (0, 1):
        line = f"worker {number} of 2 has learned y = 3.00 x + 1.00"
        assert line in outputs[f"worker-{number}"], outputs


@pytest.mark.needs("torch")
def test_torch_trains_in_four_pods_together(completed):
    outputs = completed("line")
    pods = ["master-0", "worker-0", "worker-1", "worker-2"]
    for rank, pod in enumerate(pods):
        assert f"rank {rank} of 4 has learned y = 3.00 x + 1.00" in outputs[pod], outputs
