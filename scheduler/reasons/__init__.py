"""Why a gang was not placed: found with the engine, and put into words.

explain   a cause with numbers, from the state in which the gang was short
limits    causes in which a queue is in the way
obstacle  which other pods are in the way
sentence  causes in words
message   causes in the status of a pod group, as words and as data
"""
