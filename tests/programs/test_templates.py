"""The templates that come with the product, with their defaults, on this machine: each runs to its end."""

import pytest

from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.rules import yaml_write
from proof.harness.waiting import until
from tests.programs.test_guide import ENDED, LONG_S, logs

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]


def needing(slug, *programs):
    return pytest.param(slug, id=slug, marks=[pytest.mark.needs(*programs)] if programs else [])


RUNS = [
    needing("mpi", "mpirun", "sshd"),
    needing("pytorch", "torch"),
    needing("tensorflow", "tensorflow"),
    needing("ray", "ray"),
    needing("spark", "pyspark", "java"),
    needing("driver-and-executors"),
]
SAYS = {
    "mpi": "rank 1 of 2",
    "pytorch": "of 3 has learned y = 3.00 x + 1.00",
    "tensorflow": "of 2 has learned y = 3.00 x + 1.00",
    "ray": "the sum is 4498500",
    "spark": "3 executors: pi is about 3.14",
    "driver-and-executors": "11301 primes below 12 x 10,000",
}


def test_every_template_is_tried():
    assert [each.values[0] for each in RUNS] == list(BUILTINS)


@pytest.mark.parametrize("slug", RUNS)
def test_a_template_runs_to_its_end(person, watcher, slug):
    template = BUILTINS[slug]
    person.create(yaml_write.dump(fill(template.template, template.parameters, template.defaults)))
    until(lambda: watcher.phase(slug) in ENDED, LONG_S, what=f"the end of {slug}")
    outputs = logs(person, watcher, slug)
    assert watcher.phase(slug) == "Completed", (watcher.state(slug), outputs)
    assert SAYS[slug] in "".join(outputs.values()), outputs
