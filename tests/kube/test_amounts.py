import contextlib
from fractions import Fraction

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import amounts, quantity
from kube.kinds.core import PodSpec
from tests.tables import parts

resource_amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**40))


@pytest.mark.shows(
    "scheduler 1.2/containers", "scheduler 1.2/init containers", "scheduler 1.2/overhead", "scheduler 1.2/pod level"
)
@parts("kube/amounts", "requests of pods")
def test_pod_request(part):
    def requested(text):
        found = amounts.pod_request(yaml.safe_load(text))
        spec = yaml.safe_load(text)
        for each in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            each["name"] = "c"
        assert amounts.pod_request(msgspec.convert(spec, PodSpec)) == found
        assert found.pop("pods") == 1
        return found

    part.check(requested)


@parts("kube/amounts", "limits of pods")
def test_pod_limits(part):
    part.check(lambda text: amounts.pod_limits(yaml.safe_load(text)))
    written = {"cpu": "1.5", "memory": "1Gi", "nvidia.com/gpu": 2, "ephemeral-storage": "1500m"}
    assert amounts.of(written) == {"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 2, "ephemeral-storage": 2}
    assert amounts.of(None) == {}


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


@parts("kube/amounts", "shown", "about")
def test_amounts_are_shown_as_people_write_them_and_what_was_reckoned_as_exactly_as_it_matters(part):
    def shown(text):
        name, amount = text.split()
        return {"shown": amounts.show, "about": amounts.about}[part.title](name, int(amount))

    part.check(shown)


SUFFIXES = ["", *[s for s in quantity.DECIMAL if s], *quantity.BINARY]
values = st.fractions(min_value=-(2**40), max_value=2**40, max_denominator=1).map(lambda f: f / 1000)
decimals = st.sampled_from(["", ".", ".5", ".125", ".000001"])
texts = st.tuples(st.sampled_from(["", "+", "-"]), st.integers(0, 7).map(str), decimals, st.sampled_from(SUFFIXES)).map(
    "".join
)


@parts("kube/amounts", "quantities")
def test_every_spelling_is_read_exactly(part):
    part.check(lambda text: str(quantity.parse(text)))
    assert (quantity.parse(2), quantity.parse(0.1)) == (2, Fraction(1, 10)), "a number means its decimals"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 ", " 1", "1\n", ".", "-", "1.2.3", "1ki", "1KI", "1mi", "1Kib", "1e", "1e1.5", "0x10", "1_000",
        "\u0661", "1e999999", "1e-999999", "1e37", "9" * 10_000_000, "1e" + "9" * 1000, "8Ei", "1e19", 2**63,
        float("nan"), float("inf"), 1e300, True, None, [], {}, b"1",
    ],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_a_sentence(text):
    with pytest.raises(quantity.QuantityError) as refused:
        quantity.parse(text)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 250


@parts("kube/amounts", "canonical quantities")
def test_canonical_form_is_that_of_kubernetes(part):
    part.check(quantity.canonical)
    assert quantity.canonical(Fraction(3 * 2**30), binary=True) == "3Gi"
    assert [quantity.canonical(each) for each in (Fraction(1, 3), 2048)] == ["333333334n", "2048"]


@given(values, st.booleans())
def test_canonical_form_keeps_the_value(value, binary):
    assert quantity.parse(quantity.canonical(value, binary=binary)) == value
    assert 0 <= quantity.units(value) - value < 1
    assert 0 <= quantity.milli(value) - value * 1000 < 1


@given(texts, texts)
def test_canonical_form_keeps_the_order_of_what_is_not_rounded(a, b):
    low, high = sorted((a, b), key=quantity.parse)
    assert quantity.parse(quantity.canonical(low)) <= quantity.parse(quantity.canonical(high))
    assert quantity.canonical(quantity.canonical(a)) == quantity.canonical(a)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(quantity.QuantityError):
        quantity.parse(text)
