"""What queues deserve of the cluster.

tree        queues with those above and below them, even where some are wrong
deserved    the fair share of each, by weight (proportion) or as stated (capacity)
"""

from __future__ import annotations
