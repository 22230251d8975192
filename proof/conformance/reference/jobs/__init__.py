"""The reference of Volcano's Job as items, chapter by chapter; their ids are those of its sections."""

from __future__ import annotations

from proof.conformance.items import Page
from proof.conformance.reference.jobs import (
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
_SECTIONS = (
    *identity.NAMES,
    *(section for chapter in CHAPTERS for section in chapter.SECTIONS),
    *identity.SEED,
    *oddities.SECTIONS,
)
PAGE = Page(
    "conformance-jobs.md",
    """\
# Conformance of jobs

What Volcano's Job is to the people who use it, item by item: fields, phases, events, actions, admission, plugins.
The numbers are the sections of the reference that this project was built from; it describes Volcano of August 2026.
""",
    _SECTIONS,
)
