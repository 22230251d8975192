"""The agent of this machine, which is what a kubelet is elsewhere.

`agent` reads the log, `pod_worker` brings one pod a step further by the rule
(`node.rules.lifecycle`), `node.containers` and `node.volumes` say what a container
gets, `runtime` starts it, `machine` is the Node object, `server` answers the API
server.
"""
