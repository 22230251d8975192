"""Beat where somebody sets the clock: it ticks on, and what waits comes when it would have come."""

from datetime import UTC, datetime

import pytest
from kombu.exceptions import OperationalError

from cluster import clock, tasks
from cluster.models import Timer
from volcano_ui.beat import Clock
from volcano_ui.celery import app

HOUR_S = 3600


@pytest.fixture
def beat(moved_clock, monkeypatch):
    """Beat by a clock that the test moves, and the names of the tasks that it sent."""
    monkeypatch.setattr(app, "now", lambda: datetime.fromtimestamp(moved_clock.us / 1e6, UTC))
    sent = []
    monkeypatch.setattr(
        Clock, "apply_async", lambda self, entry, **_: sent.append((entry.task, tuple(entry.args or ())))
    )
    monkeypatch.setattr(app, "send_task", lambda name, args: sent.append((name, args)))
    made = Clock(app=app)
    made.sent = sent
    return made


def during(beat, moved_clock, seconds):
    """Let beat run for so long; return what it sent."""
    beat.sent.clear()
    end = moved_clock.seconds + seconds
    while moved_clock.seconds < end:
        moved_clock.move(max(beat.tick(), 0.001))
    return list(beat.sent)


@pytest.mark.parametrize("jump_s", [-10 * 60, -3 * HOUR_S, -5, 2 * HOUR_S])
def test_ticks_go_on_when_the_clock_is_set(beat, moved_clock, jump_s):
    tick = ("cluster.tasks.tick", ("scheduler",))
    assert 7 <= during(beat, moved_clock, 8).count(tick) <= 9
    moved_clock.us += jump_s * 1_000_000
    assert 11 <= during(beat, moved_clock, 12).count(tick) <= 13


def test_timers_are_told_once_by_how_much_the_clock_was_set_back(beat, moved_clock):
    during(beat, moved_clock, 2)
    moved_clock.us -= HOUR_S * 1_000_000
    (arguments,) = [args for name, args in during(beat, moved_clock, 10) if "clock" in name]
    assert arguments == (HOUR_S * 1000,)
    moved_clock.us += HOUR_S * 1_000_000
    assert not [name for name, _ in during(beat, moved_clock, 10) if "clock" in name]


def test_what_could_not_be_told_without_redis_is_told_later(beat, moved_clock, monkeypatch):
    tell = app.send_task
    monkeypatch.setattr(app, "send_task", lambda *_: (_ for _ in ()).throw(OperationalError("away")))
    moved_clock.us -= HOUR_S * 1_000_000
    during(beat, moved_clock, 2)
    monkeypatch.setattr(app, "send_task", tell)
    assert ("cluster.tasks.clock_set_back", (HOUR_S * 1000,)) in during(beat, moved_clock, 2)


@pytest.mark.django_db
def test_a_timer_comes_when_it_would_have_come(moved_clock):
    now = clock.milliseconds()
    for key, due in (("soon", now + 3000), ("due", now - 1000), ("late", now + 7_200_000)):
        Timer.objects.create(cursor="jobs/0", kind="ttl", key=key, due=due)
    moved_clock.us -= HOUR_S * 1_000_000
    tasks.clock_set_back(HOUR_S * 1000)
    left = {timer.key: timer.due - clock.milliseconds() for timer in Timer.objects.all()}
    assert left == {"soon": 3000, "due": 0, "late": 7_200_000}
