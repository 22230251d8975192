"""Where our answers are known to differ from a kube-apiserver's, and which line of the documentation tells of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
        asked = f"{found.exchange.method} {found.exchange.path}"
        return (
            name in self.recordings.split()
            and re.fullmatch(self.at, found.difference.at) is not None
            and re.search(self.of, asked) is not None
            and (not self.to or re.fullmatch(self.to, str(found.difference.found)) is not None)
        )


_ALL = "kubectl kubectl_access kubectl_custom"
_DISCOVERY = r"^GET /apis?(/[a-z0-9.]+)?(/v\w+)?(\?timeout=32s)?$"
_NOT_SERVED = "(replicationcontrollers|daemonsets|deployments|replicasets|statefulsets|horizontalpodautoscalers|cronjobs)"

# fmt: off
ALLOWED: tuple[Allowed, ...] = (
    Allowed("Answers in protobuf or CBOR", _ALL, "type", to="application/json"),
    Allowed("Resources that are not served", "kubectl", "code", rf"^GET /api\S*/{_NOT_SERVED}", to="404 .*"),
    Allowed("Resources that are not served", _ALL, r"(items|groups|resources)\[[^]]*\]", _DISCOVERY),
    Allowed("Resources that are not served", _ALL, r"items\[[^]]*\]\.versions\[[^]]*\](\.resources\[[^]]*\](\.subresources\[[^]]*\])?)?", _DISCOVERY),
    Allowed("Discovery of Kubernetes' own kinds", _ALL, r".*\.(responseKind\.(group|version)|shortNames|storageVersionHash)", _DISCOVERY),
    Allowed("Discovery of Kubernetes' own kinds", "kubectl_access", "apiVersion", _DISCOVERY),
    Allowed("Description of columns", "kubectl kubectl_custom", r".*columnDefinitions\[[^]]*\]\.description"),
    Allowed("The annotation `ui.volcano.sh/created-by`", "kubectl kubectl_custom", r".*metadata\.annotations(\.ui\.volcano\.sh/created-by)?", to=r"admin|\{'ui\.volcano\.sh/created-by': 'admin'\}"),
    Allowed("Items of a list", "kubectl", r"items\[[^]]*\]\.(kind|apiVersion)"),
    Allowed("managedFields of new objects", "kubectl kubectl_custom", r".*metadata\.managedFields(\[.*)?"),
    Allowed("`/version`", "kubectl kubectl_access", r"\w+", "^GET /version"),
    Allowed("OpenAPI paths", _ALL, r".*", "^GET /openapi/"),
    Allowed("Messages of refusals", "kubectl kubectl_access", r"message|details\.causes\[[^]]*\]\.message"),
    Allowed("A new node", "kubectl", r".*(spec\.taints|labels)(\[.*)?", "/nodes"),
    Allowed("ServiceAccount admission", "kubectl", r".*spec\.(volumes|containers\[\w+\]\.volumeMounts)", "/pods", to=r"\(nothing\)"),
    Allowed("Resources that are not served", "kubectl", "code", r"^GET /api\S*/(endpointslices|ingresses|persistentvolumes)\b", to="404 .*"),
    Allowed("Resources that are not served", "kubectl", r"details\.(name|kind|group)", "^GET /apis/apps/"),
    Allowed("Discovery of Kubernetes' own kinds", "kubectl", "apiVersion", r"^GET /api/v1$"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", r"(items|rows)\[(/volcano-\w+|default/kubernetes|/master-pri)\]", "^GET .*/(namespaces|services|priorityclasses)\\b"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", r"items\[/system-[a-z-]+\]\.(description|globalDefault)", "^GET .*/priorityclasses"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", "code", "^GET .*/(volcano-\\w+|kubernetes)$", to="404 .*"),
    Allowed("Objects that a kube-apiserver makes for itself", "kubectl", "path or body", "^GET .*/events"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", r".*spec\.(clusterIPs?|ports\[[^]]*\]\.nodePort)", "/services", to=r"\(nothing\)"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", r"rows\[[^]]*\]\.cells\[[24]\]", "/services"),
    Allowed("`clusterIP` and `nodePort` of services", "kubectl", "warnings", "^POST .*/services"),
    Allowed("Jobs of `batch/v1`", "kubectl", "warnings", "^POST .*/batch/v1/"),
    Allowed("Network policies", "kubectl", "warnings", "^POST .*/networkpolicies"),
    Allowed("PersistentVolumeClaims", "kubectl", r".*(status\.(phase|capacity|accessModes)|cells\[1\])", "/persistentvolumeclaims"),
    Allowed("Deleting a claim", "kubectl", r".*metadata\.(finalizers|deletion\w+)", "/persistentvolumeclaims"),
    Allowed("A namespace that is not there", "kubectl", r"details\.causes", "/namespaces/nowhere/"),
    Allowed("Unknown fields of built-in kinds", "kubectl", r"(.*\.)?datta"),
    Allowed("Empty values", "kubectl", r".*conditions\[Ready\]\.(lastProbeTime|message)", "/(pods|nodes)"),
    Allowed("Empty values", "kubectl", r"(.*\.)?(eventTime|reportingComponent|reportingInstance)", "/events"),
    Allowed("Empty values", "kubectl", r"metadata\.labels", "/configmaps", to=r"\{\}"),
    Allowed("Empty values", "kubectl", r".*object\.columnDefinitions", "watch=", to=r"\[\]"),
    Allowed("Empty values", "kubectl_custom", r"metadata\.continue", "/shirts"),
    Allowed("Bookmarks of a watch", "kubectl kubectl_custom", r"\[BOOKMARK\]\.object\.(spec|status)"),
    Allowed("Deletion of a pod", "kubectl", r".*metadata\.(generation|deletionTimestamp|deletionGracePeriodSeconds)", "^(DELETE|GET) .*/pods", to=r"1|30|\(nothing\)"),
    Allowed("Deletion of a pod", "kubectl", r"\[MODIFIED\]", "^GET .*/pods", to=r"\(nothing\)"),
    Allowed("Grace of what has none", "kubectl kubectl_custom", r".*metadata\.deletionGracePeriodSeconds", "/(namespaces|customresourcedefinitions)", to="0"),
    Allowed("Eviction before a budget was counted", "kubectl", r"details\.retryAfterSeconds", "/eviction$"),
    Allowed("Columns that Kubernetes 1.35 has no more", "kubectl", r"columnDefinitions\[Secrets\]|rows\[[^]]*\]\.cells", "/serviceaccounts"),
    Allowed("Deprecations", "kubectl", "warnings", "/endpoints", to=r"\[\]"),
    Allowed("`exec`, `attach`", "kubectl", "code", "^GET .*/exec", to="403 .*"),
    Allowed("Finalizer of a definition", "kubectl_custom", r".*metadata\.finalizers"),
    Allowed("Definitions are served at once", "kubectl_custom", r"status\.(conditions|acceptedNames\.\w+)|status\.conditions\[Terminating\]|metadata\.generation", "^(POST|DELETE) .*/customresourcedefinitions"),
)
