"""The whole cluster in one process, on a virtual clock, with every order of events from a seed.

See docs/design/simulation.md.
"""
