from __future__ import annotations

import pytest

from kube.kinds.core import Container
from node import image_names

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(("text", "whole"), [
    ("busybox", "docker.io/library/busybox:latest"),
    ("busybox:1.36", "docker.io/library/busybox:1.36"),
    ("volcanosh/example", "docker.io/volcanosh/example:latest"),
    ("quay.io/a/b/c:v1", "quay.io/a/b/c:v1"),
    ("localhost/mine", "localhost/mine:latest"),
    ("127.0.0.1:5000/a", "127.0.0.1:5000/a:latest"),
    ("registry:5000/a:b", "registry:5000/a:b"),
    (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
    (f"quay.io/a:v1@{DIGEST}", f"quay.io/a@{DIGEST}"),
])  # fmt: skip
def test_name_is_what_a_kubelet_pulls(text, whole):
    assert image_names.parse(text).whole == whole


@pytest.mark.parametrize(("text", "built"), [
    ("mine", "localhost/mine:latest"),
    ("mine:1", "localhost/mine:1"),
    ("team/mine:1", "localhost/team/mine:1"),
    ("docker.io/mine", ""),
    ("quay.io/team/mine:1", ""),
    ("localhost/mine", ""),
    (f"mine@{DIGEST}", ""),
])  # fmt: skip
def test_what_names_no_registry_may_have_been_built_here(text, built):
    assert image_names.built(text) == built


@pytest.mark.parametrize(
    "text",
    ["", "UPPER", "a b", "-a", "a:", "a@", "a@sha256:12", "a//b", "a/:b", "--help", "x/UPPER", "a:b:c", "a\n", "ü"],
)
def test_what_is_no_name_is_refused_with_the_form(text):
    with pytest.raises(image_names.InvalidImageName, match=r"invalid reference format; write registry/path:tag"):
        image_names.parse(text)


@pytest.mark.parametrize(("image", "given", "policy"), [
    ("a", "", "Always"),
    ("a:latest", "", "Always"),
    ("a:1", "", "IfNotPresent"),
    (f"a@{DIGEST}", "", "IfNotPresent"),
    (f"a:latest@{DIGEST}", "", "IfNotPresent"),
    ("a", "Never", "Never"),
    ("a", "IfNotPresent", "IfNotPresent"),
    ("a:1", "Always", "Always"),
])  # fmt: skip
def test_policy_follows_from_the_tag_unless_it_is_given(image, given, policy):
    assert image_names.policy(Container(image=image, image_pull_policy=given)) == policy


def test_pulls_that_fail_are_tried_later_each_time():
    assert [image_names.back_off_s(count) for count in (1, 2, 3, 5, 6, 7, 1000)] == [10, 20, 40, 160, 300, 300, 300]
