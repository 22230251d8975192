"""The mirror of another cluster's objects in the store: which kinds, by which rules, who lists and watches, who writes."""
