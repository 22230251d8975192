"""The rules of queues: admission, states, the hierarchy, and fair shares."""
