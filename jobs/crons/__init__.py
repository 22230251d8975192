"""Volcano's CronJob: rules and controller of jobs that are made at times."""
