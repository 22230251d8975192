"""The history of jobs: their phases, runs, pods and events, folded from the log."""
