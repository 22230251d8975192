"""The names of images and what follows from them, as Kubernetes has it: pure.

`busybox` is `docker.io/library/busybox:latest` on every node, whatever an engine's own settings make of short names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kube.kinds.core import Container
from kube.kinds.pod import PullPolicy

LATEST = "latest"
BACK_OFF_S, BACK_OFF_MAX_S = 10, 300  # a kubelet's, between pulls that fail
_HOST = re.compile(r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128}")


class InvalidImageName(ValueError):
    """A text is not the name of an image; the message says what is wrong, and how names are made."""


class ImageName(NamedTuple):
    """The name of an image in its parts; the tag is `latest` where neither tag nor digest is given."""

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def whole(self) -> str:
        """Return the name as an engine pulls it: where there is a digest, that counts and not the tag."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"

    @property
    def repository(self) -> str:
        """Return the name without tag and digest."""
        return f"{self.registry}/{self.path}"


def parse(text: str) -> ImageName:
    """Return the image that a text names; InvalidImageName when it names none."""
    rest, at, digest = text.partition("@")
    head, slash, tail = rest.rpartition("/")
    last, colon, tag = tail.partition(":")
    first, _, below = f"{head}{slash}{last}".partition("/")
    # As docker has it: the first part is a registry if it could not be a directory.
    is_host = bool(below) and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    registry, path = (first, below) if is_host else ("docker.io", f"{head}{slash}{last}")
    if registry == "docker.io" and "/" not in path:
        path = f"library/{path}"
    wrong = (
        not _HOST.fullmatch(registry)
        or not _PATH.fullmatch(path)
        or (colon and not _TAG.fullmatch(tag))
        or (at and not _DIGEST.fullmatch(digest))
    )
    if wrong:
        raise InvalidImageName(
            f'"{text}" is not the name of an image: invalid reference format; '
            "write registry/path:tag in lower case, such as docker.io/library/busybox:1.36"
        )
    return ImageName(registry, path, tag if colon or at else LATEST, digest)


def built(text: str) -> str:
    """Return how podman calls an image that was built on the machine under this name; "" where a registry or digest is named."""
    name, rest = parse(text), text.partition("@")[0]
    if name.digest or rest.startswith(f"{name.registry}/"):
        return ""
    return f"localhost/{rest if ':' in rest else f'{rest}:{name.tag}'}"


def policy(container: Container) -> PullPolicy:
    """Return when the container's image is pulled: by its own policy, else always where nothing but `latest` is named."""
    explicit = container.image_pull_policy
    if explicit in tuple(PullPolicy):
        return PullPolicy(explicit)
    name = parse(container.image)
    return PullPolicy.ALWAYS if name.tag == LATEST and not name.digest else PullPolicy.IF_NOT_PRESENT


def back_off_s(failures: int) -> int:
    """Return for how many seconds nothing is pulled after so many failures one after another."""
    return min(BACK_OFF_S << min(failures - 1, 10), BACK_OFF_MAX_S)
