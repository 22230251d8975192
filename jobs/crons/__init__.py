"""Volcano's CronJob: rules and controller of jobs made on a schedule."""
