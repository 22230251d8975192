from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import amounts
from kube.kinds.core import PodSpec
from tests.builders import container
from tests.tables import cases

resource_amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**40))


def test_cpu_counts_thousandths_and_the_rest_whole_units():
    written = {"cpu": "1.5", "memory": "1Gi", "nvidia.com/gpu": 2, "ephemeral-storage": "1500m"}
    assert amounts.of(written) == {"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 2, "ephemeral-storage": 2}
    assert amounts.of(None) == {}


def needs(limits=None, restart=None, **requests):
    return container("c", requests=requests, limits=limits, **({"restartPolicy": restart} if restart else {}))


def pod(*containers, init=(), **spec):
    return {"containers": list(containers), "initContainers": list(init), **spec}


ONE = needs(cpu=1)


@pytest.mark.shows(
    "scheduler 1.2/containers", "scheduler 1.2/init containers", "scheduler 1.2/overhead", "scheduler 1.2/pod level"
)
@cases("spec, expected", {
    "asks for nothing": ({}, {}),
    "containers add up": (pod(ONE, needs(cpu="500m", memory="1Ki")), {"cpu": 1500, "memory": 1024}),
    "a limit stands in for a missing request": (pod(needs({"cpu": 2, "memory": "1Ki"}, cpu=1)), {"cpu": 1000, "memory": 1024}),
    "the largest init container counts where it is more": (pod(needs(cpu=1, memory="1Ki"), init=[needs(cpu=3), needs(cpu=2)]), {"cpu": 3000, "memory": 1024}),
    "a sidecar runs beside what starts after it": (pod(ONE, init=[needs(restart="Always", cpu=2), needs(cpu="1500m")]), {"cpu": 3500}),
    "overhead comes on top": (pod(ONE, overhead={"cpu": "100m", "memory": 5}), {"cpu": 1100, "memory": 5}),
    "a request of the pod replaces the sum": (pod(needs(cpu=1, memory=7), resources={"requests": {"cpu": 4}}), {"cpu": 4000, "memory": 7}),
})  # fmt: skip
def test_pod_request(spec, expected):
    assert amounts.pod_request(spec) == {**expected, "pods": 1}
    assert amounts.pod_request(msgspec.convert(spec, PodSpec)) == {**expected, "pods": 1}


@cases("spec, expected", {
    "the sum": (pod(needs({"cpu": 1}), needs({"cpu": 2, "memory": 3})), {"cpu": 3000, "memory": 3}),
    "or an init container": (pod(needs({"cpu": 1}), init=[needs({"cpu": 4})]), {"cpu": 4000}),
    "overhead on top of what is limited": (pod(needs({"cpu": 1}), overhead={"cpu": 1, "memory": 5}), {"cpu": 2000}),
    "a limit of the pod replaces the sum": (pod(needs({"cpu": 1}), resources={"limits": {"cpu": 4}}), {"cpu": 4000}),
    "requests are no limits": (pod(ONE), {}),
})  # fmt: skip
def test_pod_limits(spec, expected):
    assert amounts.pod_limits(spec) == expected


@given(resource_amounts, resource_amounts)
def test_adding_and_subtracting_undo_each_other(a, b):
    before = (dict(a), dict(b))
    undone = amounts.subtract(amounts.add(a, b), b)
    assert {name: amount for name, amount in undone.items() if amount} == {
        name: each for name, each in a.items() if each
    }
    assert (a, b) == before


@pytest.mark.shows("scheduler 1.1/tolerance", "scheduler 11/3")
@given(resource_amounts, resource_amounts)
def test_a_request_fits_exactly_when_nothing_free_becomes_negative(request_, free):
    rest = amounts.subtract(free, request_)
    assert amounts.fits(request_, free) == all(amount >= 0 for amount in rest.values())


GPU, MI = "nvidia.com/gpu", 2**20


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("cpu", 1500, "1.5 CPU"), ("cpu", 2000, "2 CPU"), ("cpu", 1, "0.001 CPU"), ("cpu", 10_000, "10 CPU"),
        ("cpu", 1250, "1.25 CPU"), ("memory", 2048 * MI, "2 GiB memory"), ("memory", 1536 * MI, "1.5 GiB memory"),
        ("memory", 1280 * MI, "1.25 GiB memory"), ("memory", 256 * MI, "256 MiB memory"), ("memory", 0, "0 bytes memory"),
        ("memory", 12_800 * MI, "12.5 GiB memory"), ("memory", 232_244 * MI, "226.8 GiB memory"),
        ("memory", 100, "100 bytes memory"), ("pods", 1, "1 pod"), ("pods", 3, "3 pods"), (GPU, 1, f"1 {GPU}"),
        ("ephemeral-storage", 10 * 2**30, "10 GiB ephemeral-storage"),
    ],
)  # fmt: skip
def test_amounts_are_shown_as_people_write_them(name, amount, expected):
    assert amounts.show(name, amount) == expected


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("cpu", 469_866, "469.9 CPU"), ("cpu", 10_000, "10 CPU"), ("cpu", 9_999, "9.999 CPU"), ("cpu", 167, "0.167 CPU"),
        ("memory", 2048 * MI, "2 GiB memory"), (GPU, 12_345, f"12345 {GPU}"),
    ],
)  # fmt: skip
def test_what_was_reckoned_is_shown_as_exactly_as_it_matters(name, amount, expected):
    assert amounts.about(name, amount) == expected
