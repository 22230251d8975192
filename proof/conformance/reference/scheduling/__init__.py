"""Scheduling, queues and pod groups as items; ids begin with the part of the reference: `scheduler 2.4/priority`."""

from __future__ import annotations

from proof.conformance.items import Page
from proof.conformance.reference.scheduling import (
    actions,
    configuration,
    documents,
    groups,
    more_plugins,
    plugins,
    queues,
    quirks,
    session,
    status,
)

CHAPTERS = (session, actions, plugins, more_plugins, configuration, status, queues, groups, documents, quirks)
PAGE = Page(
    "conformance-scheduling.md",
    """\
# Conformance of scheduling

What Volcano's scheduler, queues and pod groups are to the people who use them, rule by rule, and what the two documents
ask for that this project was built from besides: queue state (2019) and coscheduling (2018).
The numbers are the sections of the reference; it describes Volcano of August 2026.
""",
    tuple(section for chapter in CHAPTERS for section in chapter.SECTIONS),
)
