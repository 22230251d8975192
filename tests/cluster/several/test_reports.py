"""How a cluster is, as the others know it."""

from __future__ import annotations

import pytest

from cluster.remote.freshness import Word
from cluster.several import reports
from cluster.several.reports import SILENT_MS, Report

NOW = 1_000_000
AWAY = Report(Word.AWAY, "beside", NOW - 90_000, "connection refused", NOW)


@pytest.mark.parametrize(
    ("now", "word", "since"),
    [
        pytest.param(NOW, Word.AWAY, NOW - 90_000, id="at once"),
        pytest.param(NOW + SILENT_MS, Word.AWAY, NOW - 90_000, id="a while ago"),
        pytest.param(NOW + SILENT_MS + 1, Word.STOPPED, NOW, id="too long ago"),
    ],
)
def test_who_is_silent_does_not_run_since_it_was_heard_last(now, word, since):
    judged = reports.judge(AWAY, now)
    assert (judged.word, judged.since, judged.way) == (word, since, "beside")


def test_who_was_never_heard_does_not_run():
    assert reports.judge(None, NOW).word is Word.STOPPED


def test_what_is_written_is_read(tmp_path):
    folder = reports.folder(tmp_path)
    reports.write(folder, "dev", AWAY)
    assert reports.read(folder, "dev") == AWAY
    assert [path.name for path in folder.iterdir()] == ["dev.json"]
    reports.forget(folder, "dev")
    assert reports.read(folder, "dev") is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"word": "merry"}', b"[]"])
def test_what_is_no_report_counts_as_none(tmp_path, content):
    (tmp_path / "dev.json").write_bytes(content)
    assert reports.read(tmp_path, "dev") is None
