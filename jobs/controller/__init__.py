"""The job controller's rules: they derive a plan from a job, its pods and what happened to them."""
