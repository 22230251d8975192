"""Placing gangs of pods on nodes, with arrays only.

The engine knows neither Kubernetes objects nor the store. A cluster is a
matrix of free amounts, pods that ask for the same are one *class*, and a gang
is a few counts of classes with the minimum that must start together.

cluster   nodes by resources, pod classes, the room of queues
ranking   the nodes in the order in which one class fills them
relations where pods may be because of other pods
scored_ranking  the same where nodes are compared by weights, as scoring has them
wishes    what pods would rather have, and which node meets it best
gang      what a gang is, and what came out of placing it
place     all or nothing for the minimum, then as many of the rest as fit
evict     whom to evict so that a gang fits, of what units tells
leaving   the room to come of pods that are going
reclaim   what queues may take from each other
explain   why a gang was not placed: a cause with numbers
obstacle  which other pods are in the way
cause     the closed set of reasons
sentence  causes in words
message   the sentence in a condition's message
"""

from __future__ import annotations
