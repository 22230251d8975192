"""The page of one job: what is read of it, its runs, timeline, pods, policies and plugins, and why it waits."""
