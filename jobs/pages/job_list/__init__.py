"""The list of jobs: its rows, filters and columns, also those of Kubernetes' own jobs."""
