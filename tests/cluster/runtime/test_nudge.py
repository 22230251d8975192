from __future__ import annotations

import redis

from cluster.runtime import nudge, registry
from cluster.runtime.nudge import Announcer
from proof.harness.waiting import HANG_S


def test_a_nudge_from_a_thread_is_of_the_newest_revision(settings, redis_url):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    listener = redis.Redis.from_url(redis_url)
    try:
        channel = listener.pubsub(ignore_subscribe_messages=True)
        channel.subscribe(nudge.channel())
        channel.get_message(timeout=HANG_S)  # that the subscription holds
        announcer = Announcer()
        for revision in range(1, 51):
            announcer.note(frozenset({"nobody.reads.this"}), revision)
        heard = []
        while not heard or heard[-1] < 50:
            message = channel.get_message(timeout=HANG_S)
            assert message is not None, f"heard only {heard}"
            heard.append(int(message["data"]))
        assert heard == sorted(heard)
        assert len(heard) < 50
    finally:
        listener.close()
        nudge.client().close()
        nudge.client.cache_clear()


def test_asking_for_a_run_while_redis_is_away_raises_nothing():
    """A tick will find the work: whoever asks has committed already."""

    class Away:
        def queue(self, registration, shard, delay_s):
            raise ConnectionRefusedError

    before = nudge.use(Away())
    try:
        nudge.wake(registry.get("jobs"), 0)
    finally:
        nudge.use(before)
