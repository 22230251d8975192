"""When certificates are renewed, and what of them the cluster trusts meanwhile."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from cluster import issuing
from cluster.remote.webhooks import keys as keeping
from cluster.remote.webhooks.rotation import Held, Lives, Span, Step, next_step

NOW = datetime(2026, 11, 23, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LIVES = Lives()
NAMES = frozenset({"webhooks.pages.svc"})


def authority(age):
    return Span(NOW - age, NOW - age + LIVES.authority)


def served(age):
    return Span(NOW - age, NOW - age + LIVES.server)


FRESH = served(DAY)


def held(*authorities, server=FRESH, issuer=0, names=NAMES):
    return Held(authorities, server, issuer, names)


OLD, NEW = authority(250 * DAY), authority(HOUR)


@pytest.mark.parametrize(
    ("what", "is_trusted", "step"),
    [
        pytest.param(None, False, Step.BEGIN, id="nothing is there"),
        pytest.param(held(authority(366 * DAY)), True, Step.BEGIN, id="the authority is over"),
        pytest.param(held(authority(DAY)), False, Step.NONE, id="all is well"),
        pytest.param(held(authority(240 * DAY)), True, Step.NONE, id="more than a third of the authority is left"),
        pytest.param(held(OLD), True, Step.AUTHORITY, id="a third of the authority is left"),
        pytest.param(held(authority(DAY), server=served(59 * DAY)), True, Step.NONE, id="more than a third is left"),
        pytest.param(held(authority(99 * DAY), server=served(60 * DAY)), True, Step.SERVER, id="a third is left"),
        pytest.param(held(authority(DAY), names=frozenset({"other"})), True, Step.SERVER, id="another name"),
        pytest.param(held(OLD, authority(HOUR / 2)), True, Step.NONE, id="a new authority is not known everywhere yet"),
        pytest.param(held(OLD, NEW), False, Step.NONE, id="nobody could be told of a new authority"),
        pytest.param(held(OLD, NEW), True, Step.SERVER, id="a new authority is known"),
        pytest.param(held(OLD, NEW, server=served(60 * DAY)), False, Step.NONE, id="due, and nobody could be told"),
        pytest.param(held(OLD, NEW, server=served(90 * DAY)), False, Step.SERVER, id="what is served is over"),
        pytest.param(held(OLD, NEW, server=served(HOUR / 2), issuer=1), True, Step.NONE, id="some show the old one still"),
        pytest.param(held(OLD, NEW, server=served(HOUR), issuer=1), True, Step.RETIRE, id="nobody shows the old one"),
    ],
)  # fmt: skip
def test_next_step(what, is_trusted, step):
    assert next_step(what, NAMES, NOW, LIVES, is_trusted=is_trusted) is step


def trusted(bundle, server, moment):
    """Whether an API server that trusts a bundle takes a certificate."""
    return server.not_valid_before_utc <= moment <= server.not_valid_after_utc and any(
        issuing.is_issued_by(server, each) and each.not_valid_after_utc > moment for each in bundle
    )


@given(st.lists(st.integers(1, 3), min_size=20, max_size=60))
def test_whoever_is_a_look_behind_trusts_and_is_trusted_at_every_moment(quarters):
    """API servers and processes hear of what is new one after the other: any of them may be where all were a look ago."""
    lives = Lives(authority=12 * HOUR, server=6 * HOUR, overlap=HOUR)
    now, keys = NOW, keeping.after(None, Step.BEGIN, NAMES, NOW, lives)
    for number in quarters:
        now += number * timedelta(minutes=15)
        step = next_step(keys.held(), NAMES, now, lives, is_trusted=True)
        before, keys = keys, keeping.after(keys, step, NAMES, now, lives)
        for one, other in itertools.product((before, keys), repeat=2):
            assert trusted(one.authorities, other.server[0], now)
        assert len(keys.authorities) <= 2


def test_secret_holds_all_that_is_needed_to_go_on():
    keys = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES)
    for step in (Step.AUTHORITY, Step.SERVER):
        keys = keeping.after(keys, step, NAMES, NOW + 250 * DAY, LIVES)
    again = keeping.read({"data": keys.data()})
    assert again.held() == keys.held()
    assert (again.bundle, again.data()) == (keys.bundle, keys.data())
    issued = keeping.after(again, Step.SERVER, NAMES, NOW + 251 * DAY, LIVES)
    assert issuing.is_issued_by(issued.server[0], keys.authority[0])


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("value", [None, "", "!", "bm9uZQ=="], ids=["missing", "empty", "no base64", "no PEM"])
def test_secret_that_is_broken_holds_nothing(field, value):
    data = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES).data()
    data = {name: text for name, text in {**data, field: value}.items() if text is not None}
    assert keeping.read({"data": data}) is None


def test_certificate_of_another_authority_is_of_no_use():
    ours, others = (keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES) for _ in range(2))
    assert ours._replace(server=others.server).held() is None


def test_certificate_is_for_the_address_and_no_longer_than_its_authority():
    lives = Lives(authority=10 * DAY)
    server = keeping.after(None, Step.BEGIN, {"192.0.2.7"}, NOW, lives).server[0]
    assert {str(each.value) for each in issuing.names_of(server)} == {"192.0.2.7"}
    assert server.not_valid_after_utc == NOW + 10 * DAY
    assert isinstance(next(iter(issuing.names_of(server))), x509.IPAddress)
