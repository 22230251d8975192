"""Who could start on room that nobody uses: a second answer to what the scheduler decides, for tests and for operators.

It is worked out naively from nodes, pods, queues and pod groups themselves and shares no code with the scheduler that it judges
(import-linter holds it to that). So it is slow, and speaks only where a naive count is exact; it accuses nobody elsewhere.
"""
