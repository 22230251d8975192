"""The content of volumes that are made from objects."""

from __future__ import annotations

import errno
import os

import pytest

from node.agent import published_files


def test_full_disk_is_told_of_in_the_same_words_each_time(tmp_path, monkeypatch):
    """A pod's status says them, and is written again when they change."""

    def full(path, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    volume = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(os, "mkdir", full)
    told = []
    for _ in range(2):
        with pytest.raises(OSError, match="No space left") as error:
            published_files.publish(volume, {"key": (b"value", 0o644)})
        told.append((error.value.strerror, error.value.filename))
    os.close(volume)
    assert told == [("No space left on device", "the files of a volume")] * 2
