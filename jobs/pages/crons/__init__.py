"""The pages of cron jobs."""
