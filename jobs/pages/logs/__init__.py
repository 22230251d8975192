"""Logs of a job's pods, one or many together: found, followed, shown and downloaded."""
