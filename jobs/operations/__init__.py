"""Actions on jobs as they are asked by people, one job or thousands at a time, each with its known outcome."""
