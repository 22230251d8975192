from __future__ import annotations

import pytest

from jobs.rules import image_waits

PULL = 'Back-off pulling image "r/a:1": ErrImagePull: failed to pull image "r/a:1": '


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (f"{PULL}manifest unknown", "manifest unknown"),
        ('failed to pull image "r/a:1": dial tcp: refused', "dial tcp: refused"),
        ("anything else", "anything else"),
        ("", ""),
    ],
)
def test_what_the_registry_said_stands_alone(message, said):
    assert image_waits.said(message) == said


@pytest.mark.parametrize(
    ("reason", "said", "helps"),
    [
        ("ImagePullBackOff", "reading manifest 1 in r/a: manifest unknown", "has no such image"),
        ("ErrImagePull", "unable to retrieve auth token: invalid username/password: unauthorized", "imagePullSecrets"),
        ("ErrImagePull", "requested access to the resource is denied", "imagePullSecrets"),
        ("ErrImagePull", "dial tcp 127.0.0.1:1: connect: connection refused", "does not reach the registry"),
        ("ErrImagePull", "lookup nosuch.example.org: no such host", "does not reach the registry"),
        ("ErrImagePull", "http: server gave HTTP response to HTTPS client", "does not trust the registry"),
        ("ErrImagePull", "write /var/lib: no space left on device", "disk is full"),
        ("ErrImagePull", "something new", "Check the image's name and tag."),
        ("ErrImageNeverPull", "", "imagePullPolicy IfNotPresent"),
        ("InvalidImageName", "", "registry/path:tag"),
    ],
)  # fmt: skip
def test_what_helps_follows_from_what_was_said(reason, said, helps):
    remedy = image_waits.remedy(reason, PULL + said if said else "")
    assert helps in remedy
    assert ("tried again by itself" in remedy) is bool(said)


@pytest.mark.parametrize(
    ("reason", "elsewhere", "is_named"),
    [
        ("ErrImagePull", False, True),
        ("ImagePullBackOff", False, True),
        ("ErrImageNeverPull", False, True),
        ("InvalidImageName", False, False),
        ("ErrImagePull", True, False),
    ],
)
def test_the_way_out_is_named_where_commands_can_run_without_images(reason, elsewhere, is_named):
    remedy = image_waits.remedy(reason, "connection refused", elsewhere=elsewhere)
    assert ("ui.volcano.sh/runtime: process" in remedy) is is_named
    assert ("VOLCANO_UI_ENGINE=none" in remedy) is is_named
