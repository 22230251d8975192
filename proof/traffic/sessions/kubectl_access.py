"""kubectl where rights are asked for: whether one may, who one is, and what somebody is told who may not."""

from __future__ import annotations

from proof.traffic.sessions.objects import CORE, object_
from proof.traffic.stage import Stage


def play(stage: Stage) -> None:
    """Ask as an administrator, and as somebody who may do nothing."""
    stage.kubectl("create serviceaccount robot")
    for line in (
        "auth can-i create pods",
        "auth can-i '*' '*'",
        "auth can-i get pods/log -n default",
        "auth can-i list queues.scheduling.volcano.sh",
        "auth can-i get /metrics",
        "auth can-i create vcjobs --as ann",
        "auth can-i get pods --as system:serviceaccount:default:robot",
        "auth can-i --list",
        "auth whoami",
        "auth whoami --as ann --as-group team",
        "create token robot --duration=1h",
        "create token none",
        "get pods --as ann",
        "get pods -A --as ann",
        "get pod none --as ann",
        "get vcjobs --as ann",
        "get queues --as ann",
        "get nodes --as ann",
        "delete configmap none --as ann",
        "logs none --as ann",
        "exec none --as ann -- true",
        "get --raw /metrics --as ann",
        "get --raw /version --as ann",
    ):
        stage.kubectl(line)
    stage.kubectl("create -f - --as ann", object_(CORE, "ConfigMap", "refused"))
    stage.kubectl("apply --server-side -f - --as ann", object_(CORE, "ConfigMap", "refused"))
