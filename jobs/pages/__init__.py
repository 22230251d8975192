"""The pages of jobs: list, one job, its pods, timeline and logs."""
