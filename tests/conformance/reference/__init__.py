"""The reference of Volcano's Job as items, chapter by chapter; their ids are those of its sections."""

from __future__ import annotations

from tests.conformance.reference import (
    admission,
    endings,
    events,
    fields,
    objects,
    oddities,
    phases,
    plugins,
)

CHAPTERS = (fields, phases, events, objects, plugins, endings, admission, oddities)
SECTIONS = tuple(section for chapter in CHAPTERS for section in chapter.SECTIONS)
