"""The world as the scheduler sees it, kept up to date from the log."""
