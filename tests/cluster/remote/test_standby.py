"""Who of several `up`s on one database runs the programs, on both databases."""

import contextlib
import threading
from unittest.mock import Mock

import pytest
from django.db import connection, connections
from psycopg import OperationalError

from cluster.models import ProgramsLease
from cluster.remote import recorder
from cluster.remote.http.target import Target
from cluster.remote.leader_election import standby
from cluster.remote.leader_election.standby import DURATION_S, Candidate, Superseded
from cluster.remote.mirror import ClusterMirror
from tests.cluster.api.test_rivals import together
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("database")


def test_first_takes_it_the_second_waits_and_of_many_who_look_at_once_one_leads():
    found = together(lambda number: Candidate(f"up-{number}").turn())
    (leader,) = {each for each in found if each}
    assert standby.term_of(leader) == 1
    first, second = Candidate(leader), Candidate("second")
    assert [each.turn() for each in (second, first, second)] == [leader] * 3
    assert standby.term_of("second") is None


@cases("silent_s, leads", {
    "for a while": (DURATION_S - 0.1, "first"),
    "for as long as it lasts": (DURATION_S, "second"),
})  # fmt: skip
def test_lease_that_is_not_renewed_is_taken(moved_clock, silent_s, leads):
    first, second = Candidate("first"), Candidate("second")
    first.turn()
    second.turn()
    moved_clock.move(silent_s)
    assert second.turn() == leads
    assert first.turn() == leads, "who was away too long has lost it"


@pytest.mark.parametrize("asleep", ["between two statements", "amid a pipeline of statements"])
def test_who_sleeps_amid_a_transaction_holds_nobody_up(moved_clock, asleep):
    """The second is no end of a statement to PostgreSQL, so that no timeout of it counts."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is on one machine, which sleeps as a whole")
    first, second = Candidate("first"), Candidate("second")
    first.turn()
    second.turn()
    text = "SELECT term FROM cluster_programslease WHERE id = 1 FOR UPDATE"
    with contextlib.closing(connections.create_connection("default")) as sleeper:
        sleeper.settings_dict["OPTIONS"]["application_name"] = "first"
        sleeper.ensure_connection()
        sleeper.set_autocommit(False)
        amid = sleeper.connection.pipeline() if "pipeline" in asleep else contextlib.nullcontext()
        with contextlib.suppress(OperationalError), amid:  # a pipeline ends with an answer
            sleeper.connection.execute(text).fetchone()
            moved_clock.move(DURATION_S)
            assert second.turn() == "second"
        with pytest.raises(OperationalError):
            sleeper.connection.execute("SELECT 1")
    assert first.turn() == "second"


def test_renewal_counts_from_when_it_was_seen_and_who_leaves_is_followed_at_once(moved_clock):
    first, second = Candidate("first"), Candidate("second")
    for _ in range(5):
        assert [first.turn(), second.turn()] == ["first"] * 2
        moved_clock.move(DURATION_S - 1)
    for _ in range(2):  # nobody leaves for another
        first.leave()
        assert second.turn() == "second"


def test_term_that_is_over_writes_nothing_and_who_starts_again_leads_on_in_one_of_its_own():
    first = Candidate("first")
    first.turn()
    with standby.in_term(1):
        recorder.claim("https://one")
    assert Candidate("first").turn() == "first"
    assert standby.term_of("first") == 2
    with pytest.raises(Superseded, match="term 1"), standby.in_term(1):
        recorder.note_silence("gone")
    assert recorder.cluster().away == 0
    first.leave()
    with standby.in_term(2):
        recorder.note_answer()
    assert recorder.cluster().heard
    third = Candidate("first")
    third.turn()
    third.leave()
    with pytest.raises(Superseded), standby.in_term(3):
        pass  # the lease was given back


def test_defect_of_the_mirror_ends_its_process(settings):
    """Threads that outlive the main one would keep it, and who starts it again would wait for ever."""
    Candidate("first").turn()
    settings.TARGET, settings.WAY = Target("one", "https://one", ""), "beside"
    made, over = [], threading.Event()

    def thread(**options):
        made.append(threading.Thread(**{**options, "target": lambda *_: over.wait()}))
        return made[-1]

    with pytest.raises(ZeroDivisionError):
        ClusterMirror(1, Mock(side_effect=ZeroDivisionError), thread=thread).run()
    over.set()
    assert [each.name for each in made if each.daemon] == ["writer", "volcano"]


def test_term_does_not_end_while_something_is_written_in_it():
    """Else what was begun in one term could come after what was written in the next."""
    Candidate("first").turn()
    order, writing = [], threading.Event()

    def take():
        try:
            writing.wait()
            Candidate("first").turn()
            order.append("taken")
        finally:
            connection.close()

    taker = threading.Thread(target=take)
    taker.start()
    with standby.in_term(1):
        writing.set()
        taker.join(0.5)
        order.append("written")
    taker.join()
    assert order == ["written", "taken"]
    assert ProgramsLease.objects.get().term == 2
