"""Everybody answers the same: a module for each fact that more than one place of the product tells.

Each has one table of situations, a row a line with the answer that is right, and one list of places that tell the fact.
Every place is asked in every situation. A place that does not tell it in a situation answers None.
"""


def differing(places, right, *world):
    """Return what places that tell something else than the right answer say, by their names."""
    results = {name: tell(*world) for name, tell in places.items()}
    assert set(results.values()) != {None}, "nobody tells it"
    return {name: answer for name, answer in results.items() if answer not in (None, right)}
