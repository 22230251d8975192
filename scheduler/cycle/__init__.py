"""One scheduling cycle: which groups are let in and placed, and what waiting groups are told."""
