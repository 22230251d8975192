"""A template that is being written, before it is saved: its YAML, and the description of each placeholder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from jobs.parameterized.parameters import TEXT, Parameter
from jobs.sweeps import placeholders
from jobs.sweeps.values import ValuesError, from_grid
from kube import lenient
from kube.yaml.problem import YamlError

BEGINNING = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: my-job
  namespace: default
spec:
  queue: default
  tasks:
  - name: main
    replicas: {{replicas}}
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo {{words}}"]
          resources:
            requests:
              cpu: 100m
"""


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """A template as it was typed; namespace and parameters follow from its YAML (namespace is "" if that is invalid)."""

    text: str
    name: str
    namespace: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def begin(cls, namespace: str) -> TemplateDraft:
        """Return the page's initial draft."""
        fields = {
            "text": BEGINNING.replace("namespace: default", f"namespace: {namespace}"),
            "meaning-replicas": "How many pods there are",
            "kind-replicas": "whole",
            "default-replicas": "2",
            "meaning-words": "What each of them says",
            "default-words": "hello",
        }
        return cls.read(fields)

    @classmethod
    def read(cls, data: Mapping[str, str]) -> TemplateDraft:
        """Read a draft from the fields of its form, or of a sweep's form, whose first values become the defaults."""
        text = data.get("text", "").replace("\r\n", "\n")
        try:
            template = placeholders.read(text)
        except YamlError:
            # Keep the descriptions until the YAML can be read again.
            described = [key.removeprefix("meaning-") for key in data if key.startswith("meaning-")]
            return cls(text, data.get("name", ""), "", tuple(_parameter(data, name) for name in described))
        return cls(
            text,
            data.get("name", "").strip() or template.stem(),
            lenient.text(template.document.object, "metadata", "namespace") or "default",
            tuple(_parameter(data, name) for name in template.names),
        )


def _parameter(data: Mapping[str, str], name: str) -> Parameter:
    default = data.get(f"default-{name}", "")
    if f"default-{name}" not in data:
        with suppress(ValuesError):  # the first of the values of a sweep's placeholder
            default = from_grid({"value": data.get(f"grid-{name}", "")}).rows[0][0]
    return Parameter(
        name,
        data.get(f"meaning-{name}", "").strip(),
        default.strip(),
        data.get(f"kind-{name}", TEXT),
        choices=tuple(each for part in data.get(f"choices-{name}", "").split(",") if (each := part.strip())),
    )
