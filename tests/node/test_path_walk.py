"""The walk from directory to directory, compared with what the kernel says of the same path."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.shim.path_walk import Links, Make, PathRefused, Walk, lineage

OPENAT2, BENEATH, NO_SYMLINKS = 437, 0x08, 0x04
libc = ctypes.CDLL(None, use_errno=True)

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=6).map("/".join)
TREES = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.none() | PATHS | PATHS.map("/".__add__)))


def kernel(root, path, resolve):
    """What openat2 finds, None where it refuses; the outcome is skipped where the kernel has no openat2."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, resolve)
    fd = libc.syscall(OPENAT2, root, path.encode(), how, 24)
    if fd < 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EPERM):
            pytest.skip("this kernel has no openat2 to compare with")
        return None
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink())
    finally:
        os.close(fd)


def walked(root, path, links):
    try:
        with Walk(root, links) as way:
            return str(Path(f"/proc/self/fd/{way.go(path).fd}").readlink())
    except (OSError, PathRefused):
        return None


@given(tree=TREES, path=PATHS)
def test_a_walk_ends_where_the_kernel_s_own_search_beneath_a_directory_ends(tree, path):
    with tempfile.TemporaryDirectory() as place:
        top = Path(place, "top")
        top.mkdir()
        for parts, link in tree:
            if any(top.joinpath(*parts[:depth]).is_symlink() for depth in range(1, len(parts))):
                continue  # it may lead out, to where nothing may be made
            with contextlib.suppress(OSError):
                top.joinpath(*parts[:-1]).mkdir(parents=True, exist_ok=True)
                if link is None:
                    top.joinpath(*parts).mkdir()
                else:
                    top.joinpath(*parts).symlink_to(link)
        root = os.open(top, os.O_PATH)
        try:
            assert walked(root, path, Links.INSIDE) == kernel(root, path, BENEATH)
            assert walked(root, path, Links.NONE) == kernel(root, path, BENEATH | NO_SYMLINKS)
        finally:
            os.close(root)


@pytest.mark.parametrize(
    "link", ["../../out", "/etc", "../top2", "inside/../../out"], ids=["up", "absolute", "sibling", "by inside"]
)
def test_nothing_is_made_through_a_link_that_leads_out(tmp_path, link):
    volume, out = tmp_path / "volume", tmp_path / "out"
    (volume / "inside").mkdir(parents=True)
    out.mkdir()
    (volume / "link").symlink_to(link)
    with pytest.raises(PathRefused, match="leads out of the volume"), Walk(str(volume), Links.INSIDE, Make.DIRECTORY) as way:  # fmt: skip
        way.go("link/made")
    assert list(out.iterdir()) == []


def test_what_is_missing_is_made_below(tmp_path):
    (tmp_path / "link").symlink_to("made")
    with Walk(str(tmp_path), Links.INSIDE, Make.DIRECTORY) as way:
        way.go("made/deep")
        way.go("../../link/deep/er")
    assert (tmp_path / "made/deep/er").is_dir()


def test_links_in_a_circle_are_given_up(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(PathRefused, match="too many symbolic links"), Walk(str(tmp_path), Links.INSIDE) as way:
        way.go("a")


def test_what_was_opened_stays_what_it_was_when_its_name_is_exchanged(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "out").mkdir()
    with Walk(str(tmp_path), make=Make.DIRECTORY) as way:
        way.go("a")
        (tmp_path / "a").rename(tmp_path / "moved")
        (tmp_path / "a").symlink_to("out")
        way.go("made")
    assert (tmp_path / "moved" / "made").is_dir()
    assert list((tmp_path / "out").iterdir()) == []


def test_links_of_the_system_are_followed_and_others_named(tmp_path):
    with Walk("/", Links.SYSTEM) as way:
        assert os.fstat(way.go("/proc/self/../../usr/bin/env").fd).st_ino == Path("/usr/bin/env").stat().st_ino
    tmp_path.chmod(0o777)
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(PathRefused, match="name the place that it stands for"), Walk("/", Links.SYSTEM) as way:
        way.go(str(tmp_path / "link"))


def test_lineage_names_every_directory_up_to_the_root(tmp_path):
    with Walk(str(tmp_path)) as way:
        found = list(lineage(way.fd))
    expected = [(one.stat().st_dev, one.stat().st_ino) for one in (tmp_path, *tmp_path.parents)]
    assert found == expected
