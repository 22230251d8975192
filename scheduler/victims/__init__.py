"""Whom to evict so that a gang finds room: a search over units, pods that go together.

evict     the search, from its beginning to its answer
units     who may be evicted
reclaim   what queues may take from each other
leaving   the room to come of pods that are going
overlap   room that is kept while others still hold it
"""
