"""Which images pods of a job wait for, as its page tells it."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.api import backend
from jobs.lifecycle import image_waits
from jobs.lifecycle.image_waits import ImageWait
from jobs.lifecycle.reading import Pod

MOST = 3  # images that are told


def of_pods(pods: Iterable[Pod]) -> list[ImageWait]:
    """Return what pods wait for an image, each image once, those of most pods first."""
    found: dict[str, ImageWait] = {}
    for pod in pods:
        if pod.is_ended:
            continue
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            waiting = status.state.waiting
            if waiting is not None and waiting.reason in image_waits.REASONS:
                remedy = image_waits.remedy(waiting.reason, waiting.message, elsewhere=backend.is_mirror)
                wait = ImageWait(status.image, image_waits.said(waiting.message), remedy)
                before = found.get(wait.image)
                found[wait.image] = wait._replace(pods=before.pods + 1) if before else wait
                break
    return sorted(found.values(), key=lambda each: (-each.pods, each.image))[:MOST]
