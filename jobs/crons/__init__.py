"""Volcano's CronJob: jobs that are made again and again, at times."""
