"""kubectl over Kubernetes' own kinds: what its cheat sheet has."""

from __future__ import annotations

from proof.traffic.sessions.objects import CORE, labelled, node, object_, pod, pod_spec
from proof.traffic.stage import Stage

PODS = "/api/v1/namespaces/default/pods"


def play(stage: Stage) -> None:
    """Do all of it."""
    stage.play("POST", "/api/v1/nodes", node("node-0"))
    stage.play("POST", "/api/v1/namespaces/default/serviceaccounts", object_(CORE, "ServiceAccount", "default"))
    look_around(stage)
    create(stage)
    apply(stage)
    change(stage)
    pods(stage)
    wait(stage)
    read(stage)
    delete(stage)


def look_around(stage: Stage) -> None:
    """Ask what there is before anything is made."""
    for line in (
        "version",
        "api-resources",
        "api-versions",
        "cluster-info",
        "get nodes -o wide",
        "get namespaces",
        "get all",
        "get nothing",
        "explain pod.spec.containers",
        "explain configmap --recursive",
        "get --raw /readyz",
    ):
        stage.kubectl(line)


def create(stage: Stage) -> None:
    """Create objects by kubectl's generators and from files."""
    for line in (
        "create namespace team",
        "create configmap settings --from-literal=colour=red --from-literal=size=9",
        "create configmap settings --from-literal=colour=red",
        "create configmap tried --from-literal=a=b --dry-run=server -o yaml",
        "create secret generic password --from-literal=word=secret",
        "create secret docker-registry registry --docker-server=r.example.com --docker-username=a --docker-password=b",
        "create serviceaccount robot",
        "create service clusterip front --tcp=80:8080",
        "create service nodeport door --tcp=80:8080",
        "create service externalname outside --external-name=example.com",
        "create job once --image=busybox:1 -- true",
        "create priorityclass urgent --value=1000 --description=now",
        "create quota small --hard=pods=20,requests.cpu=8",
        "create poddisruptionbudget keep --selector=app=web --min-available=1",
        "create token robot",
    ):
        stage.kubectl(line)
    claim = object_(CORE, "PersistentVolumeClaim", "disk", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})  # fmt: skip
    limits = object_(CORE, "LimitRange", "limits", spec={"limits": [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]})  # fmt: skip
    policy = object_("networking.k8s.io/v1", "NetworkPolicy", "closed", spec={"podSelector": {}, "policyTypes": ["Ingress"]})  # fmt: skip
    lease = object_("coordination.k8s.io/v1", "Lease", "leader", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})  # fmt: skip
    batch = object_("batch/v1", "Job", "twice", spec={"completions": 2, "template": {"spec": pod_spec(restartPolicy="Never")}})  # fmt: skip
    for each in (claim, limits, policy, lease, batch):
        stage.kubectl("create -f -", each)
    stage.kubectl("create -f - --validate=strict", {**object_(CORE, "ConfigMap", "odd"), "datta": {}})
    stage.kubectl("create -f - --validate=warn", {**object_(CORE, "ConfigMap", "odd"), "datta": {}})
    stage.kubectl("create -f -", object_(CORE, "ConfigMap", "Bad_Name"))
    stage.kubectl("create -f - -n nowhere", object_(CORE, "ConfigMap", "lost"))


def apply(stage: Stage) -> None:
    """Apply on the client's side and on the server's, anew and again."""
    first = object_(CORE, "ConfigMap", "applied", data={"a": "1", "b": "2"})
    second = object_(CORE, "ConfigMap", "applied", data={"a": "1", "c": "3"})
    for obj in (first, first, second):
        stage.kubectl("apply -f -", obj)
    stage.kubectl("diff -f -", first)
    service = object_(
        CORE, "Service", "back", spec={"selector": {"app": "back"}, "ports": [{"name": "http", "port": 80}]}
    )
    stage.kubectl("apply -f -", service)
    stage.kubectl("apply -f -", {**service, "spec": {"selector": {"app": "back"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "more", "port": 81}]}})  # fmt: skip
    ours = object_(CORE, "ConfigMap", "shared", data={"a": "1", "b": "2"})
    stage.kubectl("apply --server-side -f -", ours)
    stage.kubectl("apply --server-side -f -", ours)
    stage.kubectl(
        "apply --server-side --field-manager=other -f -", object_(CORE, "ConfigMap", "shared", data={"a": "2"})
    )
    stage.kubectl("apply --server-side --field-manager=other --force-conflicts -f -", object_(CORE, "ConfigMap", "shared", data={"a": "2"}))  # fmt: skip
    stage.kubectl("apply --server-side -f -", object_(CORE, "ConfigMap", "shared", data={"b": "2"}))
    stage.kubectl("apply --server-side --dry-run=server -f -", object_(CORE, "ConfigMap", "imagined", data={"b": "2"}))
    stage.kubectl("apply --server-side -f -", pod("applied"))
    stage.kubectl("apply -f - --prune -l app=pruned", labelled(object_(CORE, "ConfigMap", "pruned"), app="pruned"))


def change(stage: Stage) -> None:
    """Patch in three ways, edit, replace, label, annotate."""
    for line in (
        """patch configmap settings -p '{"data":{"colour":"blue"}}'""",
        """patch configmap settings --type=merge -p '{"data":{"size":null}}'""",
        """patch configmap settings --type=json -p '[{"op":"replace","path":"/data/colour","value":"green"}]'""",
        """patch configmap settings --type=json -p '[{"op":"remove","path":"/data/nothing"}]'""",
        """patch service front -p '{"spec":{"ports":[{"port":80,"name":"web"},{"port":443,"name":"tls"}]}}'""",
        """patch configmap none -p '{}'""",
        "label configmap settings tier=back",
        "label configmap settings tier=back",
        "label configmap settings tier=front --overwrite",
        "label configmap settings tier-",
        "label nodes node-0 disk=ssd",
        "annotate configmap settings note=first",
        "annotate configmap settings note-",
        "cordon node-0",
        "uncordon node-0",
        "taint nodes node-0 busy=yes:NoSchedule",
        "taint nodes node-0 busy-",
    ):
        stage.kubectl(line)
    stage.kubectl("replace -f -", object_(CORE, "ConfigMap", "settings", data={"colour": "white"}))
    stage.kubectl("replace -f -", object_(CORE, "ConfigMap", "none"))
    stage.kubectl("replace --force -f -", object_(CORE, "ConfigMap", "settings", data={"colour": "black"}))
    stage.environment["EDITOR"] = "sed -i s/black/grey/"
    stage.kubectl("edit configmap settings")
    stage.kubectl("set env pod/none A=b")
    stage.kubectl("scale --replicas=2 job/once")
    stage.kubectl("create -f -", object_(CORE, "Secret", "fixed", stringData={"a": "b"}, immutable=True))
    stage.kubectl("""patch secret fixed --type=merge -p '{"data":{"a":"Yg=="}}'""")


def pods(stage: Stage) -> None:
    """Make pods and look after them; a kubelet is played."""
    stage.kubectl("run web --image=busybox:1 --labels=app=web -- sleep 60")
    stage.kubectl("create -f -", pod("side", restartPolicy="Never", priorityClassName="urgent"))
    stage.kubectl("logs side")
    stage.kubectl("exec side -- true")
    stage.kubectl("get pods --field-selector=status.phase=Pending")
    stage.start_pod(f"{PODS}/side", "node-0")
    for line in (
        "get pods",
        "get pods -o wide",
        "get pods -A",
        "get pods --show-labels",
        "get pods -l app=web,app!=none",
        "get pods -l 'app in (web,none)'",
        "get pods -l 'app in'",
        "get pods --field-selector=spec.nodeName=node-0",
        "get pods --field-selector=spec.colour=red",
        "get pods --sort-by=.metadata.name",
        "get pod side -o yaml",
        "get pod side -o jsonpath={.status.phase}",
        "get pod none",
        "get pod,svc,cm",
        "get pods --chunk-size=1",
        "describe pod side",
        "logs none",
        "exec none -- true",
        "logs side -c other",
        "attach none",
        "port-forward none 8080:80",
        "top nodes",
        "top pods",
        "set image pod/side main=busybox:2",
        """patch pod side -p '{"spec":{"containers":[{"name":"main","command":["false"]}]}}'""",
        """patch pod side -p '{"spec":{"activeDeadlineSeconds":600}}'""",
        """patch pod side --subresource=status --type=merge -p '{"status":{"message":"fine"}}'""",
        "get pod side --subresource=status",
        "label pods --all seen=yes",
        "expose pod side --port=80",
        "drain node-0 --dry-run=server --force",
        "rollout status deployment/none",
        "autoscale deployment none --max=2",
        "get events",
        "events",
    ):
        stage.kubectl(line)
    event = object_(CORE, "Event", "side.1", involvedObject={"kind": "Pod", "namespace": "default", "name": "side"}, reason="Started", message="It runs.", type="Normal", source={"component": "kubelet"}, count=1, firstTimestamp="2026-11-27T12:00:00Z", lastTimestamp="2026-11-27T12:00:00Z")  # fmt: skip
    stage.play("POST", "/api/v1/namespaces/default/events", event)
    for line in (
        "get events",
        "events --for=pod/side",
        "describe node node-0",
        "get events --field-selector=reason=Started -o name",
    ):
        stage.kubectl(line)


def wait(stage: Stage) -> None:
    """Watch and wait while things happen."""
    stage.kubectl("create -f -", pod("late", restartPolicy="Never"))
    with stage.beside("get pods -w") as lines:
        while "late" not in next(lines):
            pass
        stage.start_pod(f"{PODS}/late", "node-0")
        while "Running" not in next(lines):
            pass
    with stage.beside("wait --for=jsonpath={.status.phase}=Succeeded pod/late --timeout=60s") as lines:
        stage.until_watched()
        stage.set_status(f"{PODS}/late", {"phase": "Succeeded"})
        next(lines)
    stage.kubectl("wait --for=condition=Ready pod/side --timeout=60s")
    stage.kubectl("wait --for=condition=Ready pod/late --timeout=1s")
    with stage.beside("wait --for=delete pod/late --timeout=60s") as lines:
        stage.until_watched()
        stage.play("DELETE", f"{PODS}/late?gracePeriodSeconds=0")
        next(lines)
    with stage.beside("get configmaps --watch-only --output-watch-events") as lines:
        stage.until_watched()
        stage.play("POST", "/api/v1/namespaces/default/configmaps", object_(CORE, "ConfigMap", "brief"))
        stage.play("DELETE", "/api/v1/namespaces/default/configmaps/brief")
        while "DELETED" not in next(lines):
            pass


def read(stage: Stage) -> None:
    """Read what there is of each kind, as a table and described."""
    for kind in ("configmap", "secret", "service", "serviceaccount", "job", "priorityclass", "quota", "pdb", "pvc", "limitrange", "netpol", "lease", "namespace", "node", "endpoints"):  # fmt: skip
        stage.kubectl(f"get {kind}")
        stage.kubectl(f"get {kind} -o wide")
        stage.kubectl(f"describe {kind}")
    for line in ("get configmaps -o name", "get configmaps -o custom-columns=NAME:.metadata.name", "get configmap settings -o json --show-managed-fields", "get --raw /api/v1/namespaces/default/configmaps/settings", "get --raw /version", "get --raw /apis/batch/v1", "get --raw /api/v1"):  # fmt: skip
        stage.kubectl(line)


def delete(stage: Stage) -> None:
    """Delete in each way."""
    for line in (
        "delete configmap settings",
        "delete configmap settings",
        "delete configmap settings --ignore-not-found",
        "delete configmaps -l app=pruned",
        "delete secret --all",
        "delete pod web --now --wait=false",
        "delete pod side --wait=false",
        "get pods",
        "delete pod side --force --grace-period=0",
        "delete pod applied --grace-period=5 --dry-run=server",
        "delete job once --cascade=orphan --wait=false",
        "delete job twice --cascade=foreground --wait=false",
        "get jobs",
        "delete pvc disk --wait=false",
        "delete service front back",
        "delete priorityclass urgent",
        "delete quota,limitrange,pdb,netpol,lease --all",
        "delete namespace team --wait=false",
        "get namespaces",
        "create configmap late -n team",
        "delete node node-0",
        "delete pods --all --force --grace-period=0",
    ):
        stage.kubectl(line)
