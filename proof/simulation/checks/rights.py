"""What people may do whatever happens: who is told that he may not, though he may, has met a defect."""

from __future__ import annotations

from cluster.store import Change
from kube import resources
from kube.resources import (
    BATCH_JOBS,
    CLAIMS,
    COMMANDS,
    CREATOR_ANNOTATION,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    PODS,
    QUEUES,
)
from proof.invariants import Broken
from proof.simulation import story
from proof.simulation.parts.server import Answer
from proof.simulation.people.client import Request
from proof.simulation.people.picture import LogPicture
from proof.simulation.people.request import MERGE, ROLES, SUBMITTERS, path

NAME = "nobody is refused what he may do"
# Kinds that submitters make and delete.
OWN = {kind.id: kind for kind in (JOBS, BATCH_JOBS, PODS, CLAIMS, JOB_TEMPLATES, JOB_FLOWS, CRON_JOBS)}
FORBIDDEN = 403


class Rights:
    """Judges refusals. Whose a thing is, is decided when it is made, and stays so when its job is gone.

    Source: design §3, rights; docs of cluster/api/rights.py. Users whose role was changed are left alone.
    """

    def __init__(self, picture: LogPicture) -> None:
        self.picture = picture
        self.whose: dict[str, str] = {}  # uid → who created it, or the job that made it
        self.other_role: set[str] = set()

    def take(self, change: Change) -> None:
        """Learn whose a new thing is."""
        if change.resource not in OWN or change.verb == "MODIFIED":
            return
        if change.verb == "DELETED":
            if change.resource == PODS.id:
                self.whose.pop(change.uid, None)
            return
        metadata = change.object["metadata"]
        owners = metadata.get("ownerReferences") or ()
        maker = next((owner["uid"] for owner in owners if owner.get("controller")), "")
        creator = (metadata.get("annotations") or {}).get(CREATOR_ANNOTATION, "")
        self.whose[change.uid] = self.whose.get(maker, creator)

    def grant(self, move: story.Grant) -> None:
        """Learn that somebody has another role."""
        if move.lost or move.namespace != "*" or move.role != ROLES[move.user]:
            self.other_role.add(move.user)

    def judge(self, request: Request, answer: Answer, revision: int) -> None:
        """Raise Broken when somebody was refused what he may do."""
        if answer.status != FORBIDDEN or b'" cannot ' not in answer.body:
            return
        if request.actor not in self.other_role and self._may(request):
            where = f"{request.method} {request.path}"
            text = f"{request.actor} may do it and was told: {answer.object['message']}"
            raise Broken(NAME, revision, where, text)

    def _may(self, request: Request) -> bool:
        role = ROLES[request.actor]
        if role == "administrator":
            return True
        if request.method == "DELETE":
            return request.actor in SUBMITTERS and self._is_own(request)
        if request.method == "POST" and request.body.get("kind") == COMMANDS.kind:
            return self._may_order(request, role)
        return role == "operator" and _says_state(request)

    def _is_own(self, request: Request) -> bool:
        """Whether a request is about a thing of its sender's."""
        for kind in OWN.values():
            for (namespace, name), obj in self.picture.objects(kind.id).items():
                if request.path == path(kind, namespace, name):
                    return self.whose.get(obj["metadata"]["uid"]) == request.actor
        return False

    def _may_order(self, request: Request, role: str) -> bool:
        """Whether a Command names its target and no other owner, and is from who may order that."""
        metadata, target = request.body["metadata"], request.body["target"]
        kind = resources.by_kind(target["apiVersion"], target["kind"])
        uid = self._meant(target.get("uid", ""))
        if any(self._meant(each["uid"]) != uid for each in metadata.get("ownerReferences") or ()):
            return False
        if role == "operator":
            return kind in (JOBS, QUEUES)
        return kind is JOBS and self.whose.get(uid) == request.actor

    def _meant(self, uid: object) -> str:
        return self.picture.meant(str(uid))


def _says_state(request: Request) -> bool:
    """Whether a request says what state a queue is to be in, and nothing else."""
    is_patch = request.method == "PATCH" and request.content_type == MERGE
    spec = request.body.get("spec") if is_patch and isinstance(request.body, dict) else None
    return (
        request.path.startswith(f"{path(QUEUES)}/") and request.body == {"spec": spec} and {*(spec or ())} == {"state"}
    )
