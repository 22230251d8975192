"""Who may hold how much: judged by adding up, at every step, what is really held."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cluster.runtime.room import PART_OF_ONE, Room

MOST = 400
NAMES = ("alice", "bob", "carol")


def distinct(shelves):
    return sum({id(chunk): len(chunk) for shelf in shelves for chunk in shelf.model}.values())


class Rooms(RuleBasedStateMachine):
    """Readers of three names share chunks, read some, go, and are cut off."""

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
