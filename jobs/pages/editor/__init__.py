"""Writing a job: its text, checking and submitting it, samples to begin with."""
