"""What all custom resources have in common, and `autoscaling/v1` Scale."""

from __future__ import annotations

from typing import Annotated

from kube.kinds.fields import Int32, View, keywords
from kube.meta import ObjectMeta


class CustomObject(View):
    """An object of a custom kind: only its metadata are known without its schema."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class ScaleSpec(View):
    """How many are wanted."""

    replicas: Annotated[int, keywords(minimum=0, maximum=2**31 - 1)] = 0


class ScaleStatus(View):
    """How many there are, and how to find them."""

    replicas: Int32 = 0
    selector: str = ""


class Scale(View):
    """The number of replicas of whatever has some."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
