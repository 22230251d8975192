"""What is said of the engines by which images run."""

from __future__ import annotations

from cluster.rules import node_engines
from tests.tables import cases

PODMAN, NONE = "podman 4.3.1", "none: podman is not installed"
GONE = "Images do not run, commands do: podman is not installed."
BOTH = (
    "Images run with podman 4.3.1 now, and commands ran before. What is to go on so: annotation "
    "ui.volcano.sh/runtime: process on the pod, or VOLCANO_UI_ENGINE=none for the whole machine."
)


@cases("now, before, said", {
    "a new node": (PODMAN, None, "Images run with podman 4.3.1."),
    "as before": (PODMAN, PODMAN, "Images run with podman 4.3.1."),
    "another engine": (PODMAN, "docker 20.10", "Images run with podman 4.3.1."),
    "the engine has come": (PODMAN, NONE, BOTH),
    "the engine has gone": (NONE, PODMAN, GONE),
    "none as before": (NONE, NONE, GONE),
})  # fmt: skip
def test_a_start_says_what_runs_and_what_is_new_about_it(now, before, said):
    known = before and node_engines.of("here", {node_engines.ANNOTATION: before})
    assert node_engines.told(node_engines.of("here", {node_engines.ANNOTATION: now}), known) == said


@cases("command, args, has", {
    "a command": (["sh"], [], True),
    "kubectl run busybox -- sh -c …": ([], ["sh", "-c", "echo hello"], True),
    "a command and options": (["python3"], ["-c", "1"], True),
    "options of the image's own program": ([], ["-c", "1"], False),
    "nothing": ([], [], False),
})  # fmt: skip
def test_arguments_alone_are_a_command_without_an_image(command, args, has):
    assert node_engines.has_command(command, args) is has
