"""Where our answers are known to differ from a kube-apiserver's, and which line of the documentation tells of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from proof.traffic.replay import Found


class Allowed(NamedTuple):
    """A difference that is meant.

    `topic` is the first column of a line of docs/kubernetes-api-differences.md. `recordings` are those in which it is
    met. `at` is the pattern of the JSON paths where the answers may differ, and `of` that of the requests: their method
    and path. `to` is the pattern of what is answered instead.
    """

    topic: str
    recordings: str
    at: str
    of: str = ""
    to: str = ""

    def allows(self, name: str, found: Found) -> bool:
        """Whether a difference that was found in a recording is this one."""
        request = f"{found.exchange.method} {found.exchange.path}"
        return (
            name in self.recordings.split()
            and re.fullmatch(self.at, found.difference.at) is not None
            and re.search(self.of, request) is not None
            and (not self.to or re.fullmatch(self.to, str(found.difference.found)) is not None)
        )


_DISCOVERING = "kubectl kubectl_access kubectl_custom kubectl_volcano client_go helm python_client"
_WRITING = "kubectl kubectl_custom kubectl_volcano client_go vcctl helm python_client"
_QUEUES = "kubectl_volcano client_go vcctl helm python_client"
_JOBS = "kubectl_volcano client_go helm python_client"
_DISCOVERY = r"^GET /apis?(/[a-z0-9.]+)?(/v\w+)?/?(\?timeout=32s)?$"
_NOT_SERVED = (
    "(replicationcontrollers|daemonsets|deployments|replicasets|statefulsets|horizontalpodautoscalers|cronjobs)"
)

# fmt: off
ALLOWED: tuple[Allowed, ...] = (
    Allowed("Answers in protobuf or CBOR", "kubectl kubectl_access kubectl_custom kubectl_volcano client_go vcctl helm", "type", to="application/json"),
    Allowed("Answers in protobuf or CBOR", "client_go", "path or body", "^POST .*/events$"),  # about an object whose uid came in protobuf
    Allowed("Answers in protobuf or CBOR", "client_go", "code", "^PATCH .*/events/", to="404 .*"),
    Allowed("Resources that are not served", "kubectl", "code", rf"^GET /api\S*/{_NOT_SERVED}", to="404 .*"),
    Allowed("Resources that are not served", _DISCOVERING, r"(items|groups|resources)\[[^]]*\]", _DISCOVERY),
    Allowed("Resources that are not served", "kubectl kubectl_access kubectl_custom kubectl_volcano client_go helm", r"items\[[^]]*\]\.versions\[[^]]*\](\.resources\[[^]]*\](\.subresources\[[^]]*\])?)?", _DISCOVERY),
    Allowed("Resources that are not served", "kubectl", "code", r"^GET /api\S*/(endpointslices|ingresses|persistentvolumes)\b", to="404 .*"),
    Allowed("Resources that are not served", "kubectl kubectl_volcano", r"details\.(name|kind|group)", r"^GET /apis/apps/|/jobs/\w+/scale$"),
    Allowed("Resources that are not served", "python_client", "code", _DISCOVERY, to="404 .*"),
    Allowed("Discovery of Kubernetes' own kinds", _DISCOVERING, r".*\.(responseKind\.(group|version)|shortNames|storageVersionHash)", _DISCOVERY),
    Allowed("Discovery of Kubernetes' own kinds", "kubectl_access python_client", "apiVersion", _DISCOVERY),
    Allowed("Discovery of Kubernetes' own kinds", "kubectl", "apiVersion", r"^GET /api/v1$"),
    Allowed("Description of columns", "kubectl kubectl_custom kubectl_volcano helm", r".*columnDefinitions\[[^]]*\]\.description"),
    Allowed("The annotation `ui.volcano.sh/created-by`", _WRITING, r".*metadata\.annotations(\.ui\.volcano\.sh/created-by)?", to=r"admin|\{'ui\.volcano\.sh/created-by': 'admin'\}"),
    Allowed("Items of a list", "kubectl python_client", r"items\[[^]]*\]\.(kind|apiVersion)"),
    Allowed("managedFields of new objects", "kubectl kubectl_custom", r".*metadata\.managedFields(\[.*)?"),
    Allowed("managedFields of new objects", "kubectl_volcano client_go vcctl python_client", r".*metadata\.managedFields\[[^]]*\]\.fieldsV1\..*"),
    Allowed("managedFields of objects made on the pages and by controllers", "kubectl_volcano client_go vcctl python_client", r".*metadata\.managedFields", "/(queues|namespaces)", to=r"\(nothing\)"),
    Allowed("`/version`", "kubectl kubectl_access helm python_client", r"\w+", "^GET /version"),
    Allowed("OpenAPI paths", "kubectl kubectl_access kubectl_custom kubectl_volcano helm", r".*", "^GET /openapi/"),
    Allowed("Messages of refusals", "kubectl kubectl_access kubectl_volcano python_client", r"message|details\.causes\[[^]]*\]\.message"),
    Allowed("A new node", "kubectl client_go python_client", r".*(spec\.taints|labels)(\[.*)?", "/nodes"),
    Allowed("ServiceAccount admission", "kubectl vcctl python_client", r".*spec\.(volumes|containers\[\w+\]\.volumeMounts)", "/pods", to=r"\(nothing\)"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl python_client", r"(items|rows)\[(/volcano-\w+|default/kubernetes|/master-pri)\]", "^GET .*/(namespaces|services|priorityclasses)\\b"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", r"items\[/system-[a-z-]+\]\.(description|globalDefault)", "^GET .*/priorityclasses"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", "code", "^GET .*/(volcano-\\w+|kubernetes)$", to="404 .*"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", "path or body", "^GET .*/events"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", r".*spec\.(clusterIPs?|ports\[[^]]*\]\.nodePort)", "/services", to=r"\(nothing\)"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", r"rows\[[^]]*\]\.cells\[[24]\]", "/services"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", "warnings", "^POST .*/services"),
    Allowed("Jobs of `batch/v1`", "kubectl", "warnings", "^POST .*/batch/v1/"),
    Allowed("Network policies", "kubectl", "warnings", "^POST .*/networkpolicies"),
    Allowed("PersistentVolumeClaims", "kubectl python_client", r".*(status\.(phase|capacity|accessModes)|cells\[1\])", "/persistentvolumeclaims"),
    Allowed("Deleting a claim", "kubectl python_client", r".*metadata\.(finalizers|deletion\w+)", "/persistentvolumeclaims"),
    Allowed("A namespace that is not there", "kubectl", r"details\.causes", "/namespaces/nowhere/"),
    Allowed("Unknown fields of built-in kinds", "kubectl", r"(.*\.)?datta"),
    Allowed("Empty values", "kubectl client_go python_client", r".*conditions\[Ready\]\.(lastProbeTime|message)", "/(pods|nodes)"),
    Allowed("Empty values", "python_client", r".*conditions\[(PodScheduled|DisruptionTarget)\]\.lastProbeTime", "^DELETE .*/pods", to=r"\(nothing\)"),
    Allowed("Empty values", "kubectl", r"(.*\.)?(eventTime|reportingComponent|reportingInstance)", "/events"),
    Allowed("Empty values", "kubectl", r"metadata\.labels", "/configmaps", to=r"\{\}"),
    Allowed("Empty values", "kubectl", r".*object\.columnDefinitions", "watch=", to=r"\[\]"),
    Allowed("Empty values", "kubectl_custom kubectl_volcano vcctl python_client", r"metadata\.continue", r"/(\w+\.)+(sh|com)/"),
    Allowed("Empty values", "python_client", r"(.*\.)?(eventTime|(deprecated)?([Ff]irst|[Ll]ast)Timestamp|(deprecated)?[Ss]ource|reporting(Component|Instance))", "/events", to=r"\(nothing\)"),
    Allowed("Empty values", _JOBS, r".*tasks\[[^]]*\]\.template\.metadata", "/jobs", to=r"\(nothing\)"),
    Allowed("Empty values", "client_go", r".*\.template\.spec\.containers\[main\]\.resources", "/jobs", to=r"\(nothing\)"),
    Allowed("Bookmarks of a watch", "kubectl kubectl_custom", r"\[BOOKMARK\]\.object\.(spec|status)"),
    Allowed("Deletion of a pod", "kubectl python_client", r".*metadata\.(generation|deletionTimestamp|deletionGracePeriodSeconds)", "^(DELETE|GET) .*/pods", to=r"1|30|\(nothing\)"),
    Allowed("Deletion of a pod", "kubectl", r"\[MODIFIED\]", "^GET .*/pods", to=r"\(nothing\)"),
    Allowed("Grace of what has none", "kubectl kubectl_custom", r".*metadata\.deletionGracePeriodSeconds", "/(namespaces|customresourcedefinitions)", to="0"),
    Allowed("Eviction before a budget was counted", "kubectl", r"details\.retryAfterSeconds", "/eviction$"),
    Allowed("Columns that Kubernetes 1.35 has no more", "kubectl helm", r"columnDefinitions\[Secrets\]|rows\[[^]]*\]\.cells", "/serviceaccounts"),
    Allowed("Deprecations", "kubectl", "warnings", "/endpoints", to=r"\[\]"),
    Allowed("`exec`, `attach`", "kubectl", "code", "^GET .*/exec", to="403 .*"),
    Allowed("Finalizer of a definition", "kubectl_custom", r".*metadata\.finalizers"),
    Allowed("Definitions are served at once", "kubectl_custom", r"status\.(conditions|acceptedNames\.\w+)|status\.conditions\[Terminating\]|metadata\.generation", "^(POST|DELETE) .*/customresourcedefinitions"),
    Allowed("A new queue", _QUEUES, r"(.*\.)?spec\.(parent|state)", "/queues", to="root|Open"),
    Allowed("A new queue", "kubectl_volcano vcctl helm python_client", r"(.*\.)?status(\.(reason|message))?", "/queues", to=r"Opened|The queue accepts jobs\.|\{'state': 'Open', .*\}"),
    Allowed("A new queue", "kubectl_volcano vcctl", r".*metadata\.managedFields\[python-httpx Update status\]", "/queues", to=r"\(nothing\)"),
    Allowed("A new queue", "kubectl_volcano helm", r"rows\[[^]]*\]\.cells\[1\]", "/queues", to="root"),
    Allowed("Deleting a queue", "helm python_client", "code", "^DELETE .*/queues/", to="403 .* only queue with state `Closed` can be deleted.*"),
    Allowed("What Volcano's webhooks refuse", "kubectl_volcano python_client", "code", "^(POST|PATCH) .*/jobs", to="422 .*"),
    Allowed("What Volcano's webhooks refuse", "kubectl_volcano", "code", "^DELETE .*/queues/default$", to="403 .*"),
    Allowed("A job that is applied again", "kubectl_volcano helm", "code", "^PATCH .*/jobs/(tune|training)", to="200 None"),
    Allowed("A job that is applied again", "kubectl_volcano", r"(.*tune\]\.)?(object\.)?metadata\.(generation|resourceVersion|annotations\.kubectl\.kubernetes\.io/last-applied-configuration)", "/jobs(/tune|[?]|$)"),
    Allowed("A job that is applied again", "kubectl_volcano", r"(.*tune\]\.)?spec\.(minAvailable|priorityClassName)", "/jobs(/tune|[?]|$)", to="2|high"),
    Allowed("Strategic merge patch of Volcano's kinds", "kubectl_volcano", "code", "^PATCH .*/queues/research", to="200 None"),
    Allowed("A Command to what is not there", "kubectl_volcano", "code", "/commands(/stop|[?])", to='404 .*"(train|stop)" not found'),
    Allowed("A Command to what is not there", "kubectl_volcano", r"(items|rows)\[default/stop\]", "/commands", to=r"\(nothing\)"),
    Allowed("A Command to what is not there", "kubectl_volcano", "path or body", "^GET .*/events.*DCommand"),
    Allowed("Job templates and cron jobs", "kubectl_volcano vcctl", r"(.*\.)?spec\.(jobTemplate\.spec\.)?(queue|maxRetry)", "/(jobtemplates|cronjobs)", to=r"\(nothing\)"),
    Allowed("Generation of pod groups", "kubectl_volcano", r".*metadata\.generation", "/podgroups", to="1"),
    Allowed("Warnings", "client_go vcctl python_client", "warnings", "/(jobs|pods|commands|jobflows)", to=r"\['299 .*"),
    Allowed("Times", "python_client", r".*conditions\[\w+\]\.lastTransitionTime", "/pods", to=r"[-\dT:]{19}\.\d{6}Z"),
    Allowed("Times", "python_client", r"spec\.(acquire|renew)Time", "^PUT .*/leases/l$", to=r"2026-11-27T12:00:00\.000001\+00:00"),
    Allowed("Reviews and tokens", "python_client", r"metadata\.(creationTimestamp|uid|managedFields)|spec\.(audiences\[0\]|boundObjectRef)|status\.reason|status\.userInfo\.(extra|groups|uid)", r"^POST .*/(selfsubject\w+|token)$"),
)
