"""Which pod groups could start on room that nobody uses: a second opinion on the scheduler's decisions, for tests and operators.

It is computed naively from the nodes, pods, queues and pod groups themselves and shares no code with the scheduler that it judges
(import-linter enforces that). So it is slow, and reports only where a naive count is exact.
"""
