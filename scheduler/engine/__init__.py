"""Placing gangs of pods on nodes, with arrays only.

The engine knows neither Kubernetes objects nor the store. A cluster is a
matrix of free amounts, pods that ask for the same are one *class*, and a gang
is a few counts of classes with the minimum that must start together.

arrays         amounts by node and resource
pod_class      pods that are alike
cluster        nodes by resources
accounts       the room of queues
relations      where pods may be because of other pods
wishes         what pods would rather have, and which node meets it best
ranking        the nodes in the order in which one class fills them
scored_ranking the same where nodes are compared by weights, as scoring has them
gang           what a gang is, and what came out of placing it
filler         pods of a gang are put on nodes, and taken off again
arrange        gangs that are to be close together, or have parts that start as a whole
place          all or nothing for the minimum, then as many of the rest as fit
cause          why a gang was not placed: the closed set of reasons, with numbers
"""

from __future__ import annotations
