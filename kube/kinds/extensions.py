"""CustomResourceDefinition of `apiextensions.k8s.io/v1`; the schemas in it are read by `kube.custom`."""

from __future__ import annotations

from typing import Annotated

from kube.kinds.fields import REQUIRED, AnyObject, Int32, View
from kube.meta import Condition, ObjectMeta


class CustomResourceNames(View):
    """How a custom kind is called."""

    plural: Annotated[str, REQUIRED] = ""
    singular: str = ""
    short_names: list[str] = []
    kind: Annotated[str, REQUIRED] = ""
    list_kind: str = ""
    categories: list[str] = []


class CustomResourceColumn(View):
    """A printed column of a custom kind."""

    name: Annotated[str, REQUIRED] = ""
    type: Annotated[str, REQUIRED] = ""
    format: str = ""
    description: str = ""
    priority: Int32 = 0
    json_path: Annotated[str, REQUIRED] = ""


class CustomResourceScale(View):
    """Where a custom kind keeps what its `scale` subresource shows."""

    spec_replicas_path: Annotated[str, REQUIRED] = ""
    status_replicas_path: Annotated[str, REQUIRED] = ""
    label_selector_path: str | None = None


class CustomResourceSubresources(View):
    """Which subresources a custom kind has."""

    status: AnyObject | None = None
    scale: CustomResourceScale | None = None


class CustomResourceValidation(View):
    """What an object of a custom kind may look like."""

    open_api_v3_schema: AnyObject | None = None


class SelectableField(View):
    """A field that a field selector may name."""

    json_path: Annotated[str, REQUIRED] = ""


class CustomResourceVersion(View):
    """One version of a custom kind."""

    name: Annotated[str, REQUIRED] = ""
    served: Annotated[bool, REQUIRED] = False
    storage: Annotated[bool, REQUIRED] = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: list[CustomResourceColumn] = []
    selectable_fields: list[SelectableField] = []


class CustomResourceDefinitionSpec(View):
    """What a custom kind is."""

    group: Annotated[str, REQUIRED] = ""
    names: Annotated[CustomResourceNames, REQUIRED] = CustomResourceNames()
    scope: Annotated[str, REQUIRED] = ""
    versions: Annotated[list[CustomResourceVersion], REQUIRED] = []
    conversion: AnyObject | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionStatus(View):
    """Whether a custom kind is served."""

    conditions: list[Condition] = []
    accepted_names: CustomResourceNames | None = None
    stored_versions: list[str] = []


class CustomResourceDefinition(View):
    """A kind that the cluster's users add."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[CustomResourceDefinitionSpec, REQUIRED] = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
