"""Writing a job: its text, what would become of it, submitting it once, samples to begin from."""
