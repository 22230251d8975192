"""Why a gang was not placed: found out by the engine, and put into words.

explain   a cause with numbers, out of the state in which the gang was short
limits    causes in which a queue stands in the way
obstacle  which other pods are in the way
sentence  causes in words
message   causes in the status of a pod group, as words and as data
"""
