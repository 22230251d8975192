"""Several clusters behind one address: each has a set of processes, a database and logs of its own.

`entries` reads which there are, `addresses` says where the pages of each are,
`router` lets all of them use one set of accounts, and `reports` is how one
knows how the others are. See docs/design/clusters.md.
"""
