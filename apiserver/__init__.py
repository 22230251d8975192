"""The Kubernetes API over HTTP: what kubectl, the client libraries and vcctl talk to.

A request comes in by `http` (`http.app.App` is the ASGI application,
`http.routes` says who answers what) and is answered in `objects`, `watch` or
`streams`; `discovery` and `openapi` say what is served. The rules are
elsewhere: rights in `cluster.access`, admission and every change in
`cluster.api`, the kinds in `kube.resources`. Here a request becomes a call of
those, and what they return becomes an answer in Kubernetes' words.

Sources: reference/kubernetes-api-and-batch-job.md §2 to §4 and §6.
"""
