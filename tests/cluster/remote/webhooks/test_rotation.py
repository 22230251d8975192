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
from tests.tables import cases

NOW = datetime(2026, 11, 23, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LIVES = Lives()
NAMES = frozenset({"webhooks.pages.svc"})


def authority(age):
    return Span(NOW - age, NOW - age + LIVES.authority)


def served(age):
    return Span(NOW - age, NOW - age + LIVES.server)


def held(*authorities, server=DAY, issuer=0, names=NAMES):
    return Held(authorities, served(server), issuer, names)


OLD, NEW = authority(250 * DAY), authority(HOUR)


@cases("what, is_trusted, step", {
    "nothing is there": (None, False, Step.BEGIN),
    "the authority is over": (held(authority(366 * DAY)), True, Step.BEGIN),
    "all is well": (held(authority(DAY)), False, Step.NONE),
    "more than a third of the authority is left": (held(authority(240 * DAY)), True, Step.NONE),
    "a third of the authority is left": (held(OLD), True, Step.AUTHORITY),
    "more than a third is left": (held(authority(DAY), server=59 * DAY), True, Step.NONE),
    "a third is left": (held(authority(99 * DAY), server=60 * DAY), True, Step.SERVER),
    "another name": (held(authority(DAY), names=frozenset({"other"})), True, Step.SERVER),
    "a new authority is not known everywhere yet": (held(OLD, authority(HOUR / 2)), True, Step.NONE),
    "nobody could be told of a new authority": (held(OLD, NEW), False, Step.NONE),
    "a new authority is known": (held(OLD, NEW), True, Step.SERVER),
    "due, and nobody could be told": (held(OLD, NEW, server=60 * DAY), False, Step.NONE),
    "what is served is over": (held(OLD, NEW, server=90 * DAY), False, Step.SERVER),
    "some show the old one still": (held(OLD, NEW, server=HOUR / 2, issuer=1), True, Step.NONE),
    "nobody shows the old one": (held(OLD, NEW, server=HOUR, issuer=1), True, Step.RETIRE),
})  # fmt: skip
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


BEGUN = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES)


def test_secret_holds_all_that_is_needed_to_go_on():
    keys = BEGUN
    for step in (Step.AUTHORITY, Step.SERVER):
        keys = keeping.after(keys, step, NAMES, NOW + 250 * DAY, LIVES)
    again = keeping.read({"data": keys.data()})
    assert again.held() == keys.held()
    assert (again.bundle, again.data()) == (keys.bundle, keys.data())
    issued = keeping.after(again, Step.SERVER, NAMES, NOW + 251 * DAY, LIVES)
    assert issuing.is_issued_by(issued.server[0], keys.authority[0])


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@cases("value", {"missing": None, "empty": "", "no base64": "!", "no PEM": "bm9uZQ=="})
def test_secret_that_is_broken_holds_nothing(field, value):
    data = {**BEGUN.data(), field: value}
    assert keeping.read({"data": {name: text for name, text in data.items() if text is not None}}) is None


def test_certificate_of_another_authority_is_of_no_use():
    other = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES)
    assert BEGUN._replace(server=other.server).held() is None


def test_certificate_is_for_the_address_and_no_longer_than_its_authority():
    server = keeping.after(None, Step.BEGIN, {"192.0.2.7"}, NOW, Lives(authority=10 * DAY)).server[0]
    (name,) = issuing.names_of(server)
    assert (str(name.value), isinstance(name, x509.IPAddress)) == ("192.0.2.7", True)
    assert server.not_valid_after_utc == NOW + 10 * DAY
