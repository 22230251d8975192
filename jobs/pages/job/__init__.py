"""The page of one job: its record, runs, timeline, pods, policies and plugins, and why it waits."""
