"""The job controller as rules: from a job, its pods and what happened to them follows a plan."""
