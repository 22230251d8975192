"""The list of jobs: its rows, filters and columns, also for Kubernetes' own Jobs."""
