"""Actions that people ask for on one job or on thousands at a time, and the outcome for each job."""
