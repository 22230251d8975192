"""A controller written with client-go (`go/main.go`), which speaks JSON, and protobuf as Kubernetes' own do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from proof.traffic.sessions.objects import CORE, node, object_
from proof.traffic.stage import Stage

SOURCE = Path(__file__).parent / "go"
JSON = ("typed", "pods", "informers", "dynamic", "leader", "events", "metadata")
PROTOBUF = ("typed", "pods", "informers")


def play(stage: Stage) -> None:
    """Do all of it."""
    program = stage.folder / "controller"
    subprocess.run(["nice", "go", "build", "-o", program, "."], cwd=SOURCE, check=True)
    stage.play("POST", "/api/v1/nodes", node("node-0"))
    stage.play("POST", "/api/v1/namespaces/default/serviceaccounts", object_(CORE, "ServiceAccount", "default"))
    for form, parts in (("json", JSON), ("protobuf", PROTOBUF)):
        for part in parts:
            stage.run("client-go", program, f"{stage.recorder.url} {form} {part}", label=f"{part} in {form}")
