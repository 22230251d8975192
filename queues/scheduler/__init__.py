"""The page on which the scheduler is configured."""
