from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from node import walls
from node.agent import reach
from node.shim.order import Wall
from tests.tables import cases


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home of the user who runs this, for what looks it up, with nothing on the search path."""
    path = tmp_path / "home"
    path.mkdir()
    entry = pwd.struct_passwd(("u", "x", os.getuid(), os.getgid(), "", str(path), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    monkeypatch.setenv("PATH", "/usr/bin")
    return path


def of(home, *folders, monkeypatch, data=None):
    for folder in folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", *(str(home / folder) for folder in folders)]))
    found = reach.of_this_machine(data or home / "data")
    return found, {os.path.relpath(path, home) for path in found if Path(path).is_relative_to(home)}


def test_programs_in_a_home_are_shown_with_their_libraries_alone(home, monkeypatch):
    for each in ("conda/lib", "conda/share", "conda/pkgs", "documents"):
        (home / each).mkdir(parents=True)
    _, read = of(home, "conda/bin", monkeypatch=monkeypatch)
    assert read == {"conda/bin", "conda/lib"}


@pytest.mark.parametrize("folder", [".", "..", "data/tools", "data"])
def test_search_path_shows_neither_the_home_nor_the_state_directory(home, monkeypatch, folder):
    (home / "data" / "tools").mkdir(parents=True)
    _, read = of(home, folder, monkeypatch=monkeypatch)
    assert read == set()


def test_link_beside_programs_is_not_followed(home, monkeypatch):
    (home / "tools").mkdir()
    (home / "tools" / "lib").symlink_to(home)
    _, read = of(home, "tools/bin", monkeypatch=monkeypatch)
    assert read == {"tools/bin"}


TO_ROOT = "let root make user namespaces (sysctl user.max_user_namespaces; in a container: its engine's filter has to allow them)"
TO_USERS = (
    "let users make user namespaces (sysctl user.max_user_namespaces; Debian: sysctl kernel.unprivileged_userns_clone=1;"
    " Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile that allows them;"
    " in a container: its engine's filter has to allow them)"
)
NEWER = "run Linux 5.15 or newer: this kernel, or the filter of an engine round the cluster, has no mount_setattr(2)"


@cases("wall, holds, says", {
    "all": (
        Wall("user", 7, True), True,
        "holds: Landlock (ABI 7), a root directory of their own, a filter of system calls; without processes of their own,"
            " a network for each namespace",
    ),
    "old Landlock": (
        Wall("none", 4, False), True,
        "holds: Landlock (ABI 4); without a root directory of their own, processes of their own, a network for each namespace,"
            " a filter of system calls; pods may send signals to each other and to the cluster's processes, connect to sockets without a path",
    ),
    "no Landlock": (
        Wall("user", 0, True), True,
        "holds: a root directory of their own, a filter of system calls; without processes of their own,"
            " a network for each namespace, Landlock; pods may send signals to each other and to the cluster's processes,"
            " connect to sockets without a path",
    ),
    "root without users of their own": (
        Wall("none", 7, True, root=True), False,
        "none: pods reach what root may; there is only Landlock (ABI 7), a filter of system calls. To have one, start the cluster as"
            f" an ordinary user, or {TO_ROOT}",
    ),
    "root": (
        Wall("root", 0, False, pids=True, root=True), True,
        "holds: a root directory and users of their own, processes of their own; without a network for each namespace,"
            " Landlock, a filter of system calls; pods may connect to sockets without a path",
    ),
    "whole": (
        Wall("user", 7, True, pids=True, networks="pasta"), True,
        "holds: Landlock (ABI 7), a root directory of their own, processes of their own,"
            " a network for each namespace with a way out by pasta, a filter of system calls",
    ),
    "none": (
        Wall(), False,
        f"none: pods reach what the user may who runs the cluster. To have one, {TO_USERS}, or have Landlock"
            " (Linux 5.19 or newer, with landlock among the kernel's lsm=)",
    ),
    "root on an old kernel": (
        Wall(seccomp=True, root=True, old=True), False,
        f"none: pods reach what root may; there is only a filter of system calls. To have one, {NEWER}",
    ),
    "old kernel": (
        Wall(seccomp=True, old=True), False,
        f"none: pods reach what the user may who runs the cluster; there is only a filter of system calls. To have one, {NEWER}",
    ),
    "without the network that it is to have": (
        Wall("user", 7, True, pids=True, closed=True), True,
        "holds: Landlock (ABI 7), a root directory of their own, processes of their own, a filter of system calls;"
            " without a network for each namespace; no pods run: there is no network without a way out for them,"
            " as VOLCANO_UI_POD_NETWORK=closed wants it",
    ),
})  # fmt: skip
def test_a_wall_in_words(wall, holds, says):
    assert walls.holds(wall) is holds
    assert walls.describe(wall) == says


def test_folder_of_the_search_path_that_cannot_be_looked_at_is_left_out(home, monkeypatch):
    """As root, who may look at everything: by a name that no file system takes."""
    monkeypatch.setenv("PATH", f"/usr/bin:/{'x' * 300}/bin")
    assert not any("xxx" in path for path in reach.of_this_machine(home / "data"))
