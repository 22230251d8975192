"""The agent of this machine, which is what a kubelet is elsewhere.

`agent` reads the log, `pod_worker` brings one pod a step further, `lifecycle`
is the rule, `prepare` and `volumes` say what a container gets, `runtime` and
`spawn` start it, `machine` is the Node object, `server` answers the API server.
"""
