"""Why pods wait for an image, and what helps. Reasons are the kubelet's; the message after them is the registry's."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cluster.rules.node import node_engines

NEVER, NO_NAME = "ErrImageNeverPull", "InvalidImageName"
REASONS: Final = ("ErrImagePull", "ImagePullBackOff", NEVER, NO_NAME)
_BY_WORDS: Final = (
    (
        re.compile(
            r"unauthorized|authentication required|access.*denied|denied:|invalid username|forbidden", re.IGNORECASE
        ),
        "The registry lets nobody in without a password, or has no such image: check the name, and name a Secret of type "
        "kubernetes.io/dockerconfigjson in imagePullSecrets, or log the engine in on the node.",
    ),
    (
        re.compile(r"manifest unknown|name unknown|not found|does not exist|manifest .*unknown", re.IGNORECASE),
        "The registry has no such image: check its name and tag.",
    ),
    (
        re.compile(r"server gave HTTP response|certificate|x509|tls:", re.IGNORECASE),
        "The node does not trust the registry's TLS: give it a certificate that it knows, or tell the engine on the node "
        "that this registry is insecure (podman: registries.conf, docker: daemon.json).",
    ),
    (
        re.compile(r"connection refused|no such host|timeout|timed out|unreachable|network|lookup|EOF", re.IGNORECASE),
        "The node does not reach the registry: check the registry's name and the node's network and proxy. "
        "An image that is on the node already needs imagePullPolicy IfNotPresent or Never.",
    ),
    (re.compile(r"no space left", re.IGNORECASE), "The node's disk is full: make room for images there."),
)
_WITHOUT: Final = f"A command that the node has itself runs without the image: {node_engines.WAY_OUT}."
_TRIED = "It is tried again by itself, at most every 5 minutes."


class ImageWait(NamedTuple):
    """An image that pods wait for, the registry's message, and what helps; `pods` is how many of the shown pods wait."""

    image: str
    message: str
    remedy: str
    pods: int = 1


def registry_message(message: str) -> str:
    """Return the message of the registry or the engine, without the kubelet's words before it."""
    return re.sub(
        r'^(Back-off pulling image "[^"]*": )?(ErrImagePull: )?(failed to pull image "[^"]*": )?', "", message
    )


def remedy(reason: str, message: str, *, elsewhere: bool = False) -> str:
    """Return what helps a pod that waits for its image; `elsewhere`: another cluster runs it, where it cannot do without."""
    if reason == NO_NAME:
        return "Correct the image's name in a new job: registry/path:tag in lower case."
    if reason == NEVER:
        helps = "Build or pull the image on the node, or let it be pulled: imagePullPolicy IfNotPresent."
    else:
        text = registry_message(message)
        advice = next((each for words, each in _BY_WORDS if words.search(text)), "Check the image's name and tag.")
        helps = f"{advice} {_TRIED}"
    return helps if elsewhere else f"{helps} {_WITHOUT}"
