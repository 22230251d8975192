"""Which pods to evict so that a gang finds room: a search over units, pods that are evicted together.

evict     the search, from start to result
units     which pods may be evicted
reclaim   what queues may take from each other
leaving   the room that pods being deleted will leave
overlap   room that is reserved while other pods still hold it
"""
