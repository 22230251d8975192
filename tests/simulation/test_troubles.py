"""Which request meets which trouble."""

from __future__ import annotations

import pytest

from proof.simulation import transcript
from proof.simulation.parts import troubles
from proof.simulation.parts.troubles import Troubles
from proof.simulation.story import Trouble


@pytest.fixture
def coming():
    found = Troubles()
    found.add(Trouble(troubles.FORGOTTEN, 1))
    found.add(Trouble("busy", 2))
    return found


def test_requests_meet_as_many_troubles_as_there_are(coming):
    met = [coming.next(reads_on=False) for _ in range(3)]
    assert [each and each.what for each in met] == ["busy", "busy", None]


def test_only_who_reads_on_meets_that_his_version_is_forgotten(coming):
    met = [coming.next(reads_on=reads_on) for reads_on in (False, True, True)]
    assert [each and each.what for each in met] == ["busy", "forgotten", "busy"]


def test_no_trouble_is_left_when_all_faults_end(coming):
    coming.clear()
    assert coming.next(reads_on=True) is None


@pytest.mark.parametrize("what", troubles.KINDS)
def test_each_trouble_is_told_in_words(what):
    assert transcript.WORDS[Trouble](Trouble(what, 3, 1_000_000))
