"""Several clusters behind one address: each has a set of processes, a database and logs of its own.

`entries` reads which there are, `addresses` says where the pages of each are, and by `reports` each shows the state of
the others; all of them use one set of accounts (`cluster.access.router`). See docs/design/clusters.md.
"""
