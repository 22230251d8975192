"""The job controller: `job_controller` reads the log, `plan` decides, the others are what a plan is made of."""
