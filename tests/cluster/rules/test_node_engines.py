"""What is said of the engines by which images run."""

from __future__ import annotations

import pytest

from cluster.rules import node_engines

PODMAN, NONE = "podman 4.3.1", "none: podman is not installed"
GONE = "Images do not run, commands do: podman is not installed."
BOTH = (
    "Images run with podman 4.3.1 now, and commands ran before. What is to go on so: annotation "
    "ui.volcano.sh/runtime: process on the pod, or VOLCANO_UI_ENGINE=none for the whole machine."
)


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        pytest.param(PODMAN, None, "Images run with podman 4.3.1.", id="a new node"),
        pytest.param(PODMAN, PODMAN, "Images run with podman 4.3.1.", id="as before"),
        pytest.param(PODMAN, "docker 20.10", "Images run with podman 4.3.1.", id="another engine"),
        pytest.param(PODMAN, NONE, BOTH, id="the engine has come"),
        pytest.param(NONE, PODMAN, GONE, id="the engine has gone"),
        pytest.param(NONE, NONE, GONE, id="none as before"),
    ],
)
def test_a_start_says_what_runs_and_what_is_new_about_it(now, before, said):
    known = before and node_engines.of("here", {node_engines.ANNOTATION: before})
    assert node_engines.told(node_engines.of("here", {node_engines.ANNOTATION: now}), known) == said


@pytest.mark.parametrize(
    ("command", "args", "has"),
    [
        pytest.param(["sh"], [], True, id="a command"),
        pytest.param([], ["sh", "-c", "echo hello"], True, id="kubectl run busybox -- sh -c …"),
        pytest.param(["python3"], ["-c", "1"], True, id="a command and options"),
        pytest.param([], ["-c", "1"], False, id="options of the image's own program"),
        pytest.param([], [], False, id="nothing"),
    ],
)
def test_arguments_alone_are_a_command_without_an_image(command, args, has):
    assert node_engines.has_command(command, args) is has
