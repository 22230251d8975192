"""What queues deserve of the cluster.

tree        queues with those above and below them, and what is wrong with some
deserved    the fair share of each, by weight (proportion) or as stated (capacity)
"""

from __future__ import annotations
