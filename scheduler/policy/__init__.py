"""How the scheduler is to work: which actions it takes, and with which plugins."""
