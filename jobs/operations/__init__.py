"""Actions on jobs as people ask for them, one job or thousands at a time, each with its outcome."""
