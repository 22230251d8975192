"""What real clients ask of a real kube-apiserver, recorded, so that our own server can be asked the same.

`python -m proof.traffic record` runs the sessions of `sessions/` against a kube-apiserver, by way of a proxy that writes
down each request and its answer (`recorder`), and keeps them in `recordings/`, a file for each client. `replay` asks
another server the same, and tells where it answers differently; `tests/apiserver/test_traffic.py` does so with ours.
`table` writes docs/kubernetes-traffic.md: what is asked how often, by whom, and which tests ask it too.
"""
