"""Readers in one process: what a follower takes has no gaps, or it hears that it has; what is kept of some kinds goes on."""

import asyncio
from contextlib import contextmanager

import hypothesis.strategies as st
import pytest
from asgiref.sync import sync_to_async
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.runtime import nudge
from cluster.runtime.follower import Follower, Pace, Wanted
from cluster.runtime.picture import SharedPicture
from cluster.runtime.room import PART_OF_ONE, Room
from cluster.store import Create, Delete, Patch, log, store
from kube.errors import Timeout
from kube.kinds.pod import Pod
from kube.resources import CONFIGMAPS, PODS
from tests import builders
from tests.cluster.store.forgetting import forget, forget_elsewhere
from tests.dashboard.live.world import until

pytestmark = pytest.mark.django_db(transaction=True)


class Notes(Follower):
    pace = Pace(shortest_s=0.0, longest_s=0.0, load=1.0, poll_s=0.02, sweep_s=0.05)
    batch = 3
    kinds = None

    def __init__(self):
        super().__init__()
        self.taken = []
        self.lost = []
        self.defect = None

    def wanted(self):
        return Wanted(self.kinds)

    async def take(self, changes):
        self.taken += [(change.revision, change.verb, change.name) for change in changes]
        if changes and self.defect:
            defect, self.defect = self.defect, None
            raise defect

    def lose(self):
        self.lost.append(self.position)


@pytest.fixture(params=["nudged", "without Redis"])
async def follower(request, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    if request.param == "nudged":
        settings.REDIS_URL = request.getfixturevalue("redis_url")
    nudge.client.cache_clear()
    it = Notes()
    yield it
    await it.stop()
    nudge.client.cache_clear()


@sync_to_async
def write(*writes):
    return store.write(*writes)


async def make(*names, kind=PODS):
    return await write(*(Create(kind, {"metadata": {"name": name, "namespace": "d"}}) for name in names))


def added(*made):
    return [(each.revision, "ADDED", each.name) for each in made]


@contextmanager
def asleep():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Notes, "_read", lambda self, after, wanted: (after, []))
        yield


async def test_everything_after_the_start_is_taken_in_order_whatever_a_pass_holds(follower):
    await make("before")
    await asyncio.gather(follower.start(), follower.start())
    made = await make(*(f"p-{number}" for number in range(10)))
    await follower.reach(made[-1].revision)
    assert (follower.taken, follower.lost) == (added(*made), [])


async def test_of_other_kinds_nothing_is_taken_but_the_position_moves_and_what_does_not_come_is_waited_for_so_long(
    follower,
):
    follower.kinds = [PODS]
    await follower.start()
    (pod,), (other,) = await make("p"), await make("c", kind=CONFIGMAPS)
    await follower.reach(other.revision)
    assert follower.taken == added(pod)
    with pytest.raises(Timeout):
        await follower.reach(follower.position + 1, within_s=0.05)


@pytest.mark.parametrize("when", ["before it looks", "while it looks"])
async def test_what_retention_was_faster_with_is_lost_and_said_to_be(follower, monkeypatch, when):
    await make("gone", "stays")
    await follower.start()
    begun, read = follower.position, log.check
    reads = []

    def check(revision, *, using="default"):
        if when == "while it looks" and not reads:
            forget_elsewhere()
        reads.append(revision)
        return read(revision, using=using)

    with asleep():
        await asyncio.sleep(0.1)
        await write(Delete(PODS, "d", "gone"))
        await write(Patch(PODS, "d", "stays", {"metadata": {"labels": {"a": "b"}}}))
        if when == "before it looks":
            await sync_to_async(forget)()
        monkeypatch.setattr(log, "check", check)
    await until(lambda: follower.lost, "the loss")
    assert (follower.lost, follower.taken) == ([begun + 2], [])
    (new,) = await make("new")
    await follower.reach(new.revision)
    assert follower.taken == added(new)


async def test_more_than_is_worth_reading_is_given_up(follower, monkeypatch):
    monkeypatch.setattr(Notes, "most", 1)
    await follower.start()
    with asleep():
        made = await make("a", "b", "c")
    await follower.reach(made[-1].revision)
    assert (follower.lost, follower.taken) == ([made[-1].revision], [])


async def test_who_fails_to_take_changes_has_lost_them_and_one_who_was_stopped_begins_again_at_the_head(follower):
    await follower.start()
    follower.defect = ValueError("a defect")
    (made,) = await make("a")
    await until(lambda: follower.lost, "the loss")
    assert follower.lost == [made.revision]
    (made,) = await make("b")
    await follower.reach(made.revision)
    assert follower.taken[-1:] == added(made)
    await follower.stop()
    await make("meanwhile")
    await follower.start()
    (new,) = await make("c")
    await follower.reach(new.revision)
    assert follower.taken[-2:] == added(made, new)


MOST = 400
NAMES = ("alice", "bob", "carol")


def distinct(shelves):
    return sum({id(chunk): len(chunk) for shelf in shelves for chunk in shelf.model}.values())


class Rooms(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.room, self.readers, self.chunks = Room(MOST), [], []

    @rule(name=st.sampled_from(NAMES))
    def come(self, name):
        reader = type("Reader", (), {"name": name, "model": [], "is_cut": False})()

        def cut():
            reader.is_cut, reader.model = True, []
            reader.shelf.close()

        reader.shelf = self.room.shelf(name, cut)
        self.readers.append(reader)

    def chosen(self, data, of):
        return of[data.draw(st.integers(0, len(of) - 1))]

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), size=st.integers(1, 120), is_shared=st.booleans())
    def put(self, data, size, is_shared):
        chunk = self.chosen(data, self.chunks) if is_shared and self.chunks else b"x" * (size + 1)
        self.chunks.append(chunk)
        reader = self.chosen(data, self.readers)
        before = {one: one.shelf.size for one in self.readers}
        if not reader.is_cut:
            reader.model.append(chunk)
            before[reader] += len(chunk)
        reader.shelf.put(chunk)
        gone = [one for one in before if one.is_cut and before[one]]
        rest = [one for one in before if not one.is_cut and one.name == reader.name]
        if gone and rest and all(one.name == reader.name for one in gone):
            assert max(before[one] for one in rest) <= max(before[one] for one in gone)

    @precondition(lambda self: any(one.model for one in self.readers))
    @rule(data=st.data())
    def read(self, data):
        reader = self.chosen(data, [one for one in self.readers if one.model])
        reader.shelf.remove(reader.model.pop(0))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def go(self, data):
        reader = self.chosen(data, self.readers)
        self.readers.remove(reader)
        reader.shelf.close()

    @invariant()
    def what_waits_is_counted_and_bounded(self):
        assert self.room.size == distinct(self.readers) <= MOST
        for name in NAMES:
            own = [one for one in self.readers if one.name == name]
            assert distinct(own) <= MOST // PART_OF_ONE
            assert [one.shelf.size for one in own] == [sum(map(len, one.model)) for one in own]
        assert set(self.room._names) <= {one.name for one in self.readers}


TestRooms = Rooms.TestCase


def test_readers_of_the_same_bytes_are_not_cut_off_for_being_many():
    room, line = Room(MOST), b"x" * 90
    shelves = [room.shelf(f"reader {number}", lambda: pytest.fail("cut off")) for number in range(1000)]
    for shelf in shelves:
        shelf.put(line)
    assert room.size == 90


def test_who_holds_most_goes_first_and_who_reads_stays():
    room, cut = Room(MOST), []
    slow, slower, quick = (room.shelf(name, lambda name=name: cut.append(name)) for name in NAMES)
    for _ in range(4):
        slow.put(bytes(10))
        slower.put(bytes(25))
        quick.put(chunk := bytes(30))
        quick.remove(chunk)
    other = [room.shelf(f"other {number}", lambda: cut.append("other")) for number in range(3)]
    for shelf in other:
        shelf.put(bytes(90))
    assert cut == ["bob", "other"]


class Names:
    """The pods that could be read."""

    def __init__(self, revision):
        self.revision, self.names = revision, []

    def take(self, change):
        self.names.append(change.read(Pod).metadata.name)


def test_of_what_cannot_be_read_nothing_is_known_and_the_rest_goes_on():
    shared = SharedPicture([PODS], Names)
    with shared.current(store.revision()):
        pass
    odd = builders.pod("odd")
    odd["metadata"]["labels"] = "none"
    store.write(Create(PODS, odd), Create(PODS, builders.pod("even")))
    with shared.current(store.revision()) as picture:
        assert picture.names == ["even"]
