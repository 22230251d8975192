"""The reference of Volcano's Job as items, chapter by chapter; their ids are those of its sections."""

from __future__ import annotations

from tests.conformance.reference import (
    admission,
    endings,
    events,
    fields,
    identity,
    objects,
    oddities,
    phases,
    plugins,
)

CHAPTERS = (fields, phases, events, objects, plugins, endings, admission)
SECTIONS = (
    *identity.NAMES,
    *(section for chapter in CHAPTERS for section in chapter.SECTIONS),
    *identity.SEED,
    *oddities.SECTIONS,
)
