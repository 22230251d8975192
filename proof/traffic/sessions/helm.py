"""Helm: a chart with a Volcano Job, a queue, a config map and an account, installed, upgraded, rolled back and removed."""

from __future__ import annotations

from pathlib import Path

import yaml

from proof.traffic.sessions.objects import CORE, Object, job, object_, queue
from proof.traffic.stage import Stage


def play(stage: Stage) -> None:
    """Do all of it."""
    chart = stage.folder / "chart"
    for line in (
        f"install training {chart} --dry-run=server",
        f"install training {chart}",
        f"install training {chart}",
        "list",
        "list --all-namespaces",
        "status training",
        "get manifest training",
        "get values training",
        f"upgrade training {chart} --set colour=blue",
        f"upgrade --install training {chart} --set colour=green --atomic",
        "history training",
        "rollback training 1",
        "test training",
        f"upgrade --install other {chart} --namespace team --create-namespace",
        "uninstall training",
        "uninstall training",
    ):
        _write(chart)
        stage.helm(line)


def _write(chart: Path) -> None:
    templates = chart / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    about = {"apiVersion": "v2", "name": "training", "version": "1.0.0", "appVersion": "1"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    (chart / "values.yaml").write_text(yaml.safe_dump({"colour": "red"}))
    for number, obj in enumerate(_objects()):
        (templates / f"{number}.yaml").write_text(yaml.safe_dump(obj))


def _objects() -> list[Object]:
    hook = object_(CORE, "ConfigMap", "{{ .Release.Name }}-before")
    hook["metadata"]["annotations"] = {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}  # fmt: skip
    return [
        hook,
        object_(CORE, "ServiceAccount", "{{ .Release.Name }}"),
        object_(CORE, "ConfigMap", "{{ .Release.Name }}", data={"colour": "{{ .Values.colour }}"}),
        queue("{{ .Release.Name }}"),
        job("{{ .Release.Name }}", queue="default"),
    ]
