"""Placing gangs of pods on nodes, with arrays only.

The engine knows neither Kubernetes objects nor the store. A cluster is a
matrix of free amounts, pods that ask for the same are one *class*, and a gang
is a few counts of classes with the minimum that must start together.

arrays         amounts by node and resource
pod_class      pods that are alike
cluster        nodes by resources
accounts       the room of queues
relations      where pods may be because of other pods
wishes         what pods prefer, and which node meets it best
ranking        the nodes in the order in which one class fills them
scored_ranking the same where nodes are compared by weights, as scoring has them
gang           what a gang is, and the result of placing it
filler         puts pods of a gang on nodes, and takes them off again
arrange        gangs that are to be close together, or have parts that start as a whole
place          all or nothing for the minimum, then as many of the rest as fit
cause          why a gang was not placed: the closed set of reasons, with numbers
"""

from __future__ import annotations
