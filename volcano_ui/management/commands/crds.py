"""`manage.py crds` prints the definitions of Volcano's kinds, for a cluster that has none; --directory writes a file for each."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management import BaseCommand

from kube import resources
from kube.custom import manifests
from kube.resource import Resource

KINDS = (
    resources.JOBS,
    resources.CRON_JOBS,
    resources.COMMANDS,
    resources.QUEUES,
    resources.POD_GROUPS,
    resources.JOB_FLOWS,
    resources.JOB_TEMPLATES,
    resources.HYPER_NODES,
)


class Command(BaseCommand):
    help = (
        "Print the CustomResourceDefinitions of Volcano's kinds, as these pages know them."
        " Apply them with `kubectl apply --server-side`: they are too large for an annotation."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--directory", help="write a file for each kind there instead")

    def handle(self, *, directory: str | None, **_: Any) -> None:
        texts = {f"{kind.id}.yaml": text(kind) for kind in KINDS}
        if directory is None:
            self.stdout.write("---\n".join(texts.values()), ending="")
            return
        for name, content in texts.items():
            (Path(directory) / name).write_text(content, encoding="utf-8")


def text(kind: Resource) -> str:
    """Return the definition of a kind as YAML."""
    # Innermost parts on one line: a third of the lines, and each of them a field.
    return yaml.dump(
        manifests.manifest(kind),
        Dumper=_Dumper,
        sort_keys=False,
        width=1_000_000,
        default_flow_style=None,
        allow_unicode=True,
    )


class _Dumper(yaml.SafeDumper):
    """Writes a part each time that it occurs, as readers of YAML expect it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
