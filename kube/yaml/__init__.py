"""YAML as Kubernetes reads it, bounded in what a text may cost.

`tree.trees` reads texts of the job editor and bodies of the API: plain values,
the place of every field, and what is wrong in words. `scalar` says what an
unquoted word means, `problem` what the parser stumbled over.
"""
