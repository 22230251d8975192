"""The row of a job in a list, written without a template: a page has hundreds, so each is small and quick to make.

The style sheet knows the column of a cell by its position (`table-jobs.css`).
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.urls import reverse
from django.utils.html import escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from cluster.store import Stored
from dashboard.parts import phases, svg
from jobs.lifecycle import phases as lifecycle
from jobs.lifecycle import progress
from jobs.lifecycle.progress import Ran
from jobs.lifecycle.reading import Job
from jobs.pages.job.pods import TroubleCounts
from kube import pod_health
from kube.meta import short_duration_words
from kube.pod_health import Health

UNTROUBLED = ("Running", "Completed")  # phases that need no reason in a list
LONGEST_BRIEF = 20  # characters of a name that a column shows whole
LONGEST_CAUSE = 44  # characters that the last column shows whole on a common screen


def row_id(stored: Stored) -> str:
    return f"job-{stored.uid}"


def row(
    stored: Stored,
    job: Job,
    *,
    selectable: bool = False,
    deleted: int = 0,
    stuck: TroubleCounts | None = None,
    ran: Ran | None = None,
) -> SafeString:
    """Return a job's row; it depends on the job and its pods alone, so that it is the same for every reader.

    `deleted` is when the job was deleted, in ms, 0 while it lives; `stuck` is how many of its pods do not run although
    they are bound; `ran` how long its run has run, if the job's status does not say all of that.
    """
    health = pod_health.health(job.status.running, stuck or {})
    gang = progress.of_job(job, deleted, health)
    is_plain = gang.total in (gang.succeeded, gang.running)  # the phase says as much
    shares = [
        svg.Share(gang.succeeded, "green", ""),
        svg.Share(gang.running, "blue", ""),
        svg.Share(gang.failed, "red", ""),
    ]
    tags = "".join(f' <span class="tag" data-hue="red">{words}</span>' for words in health.words)
    if deleted:
        tags += f' <span class="tag">deleted {_moment(deleted)}</span>'
    ran = ran or progress.last_ran(progress.phases_of(job), deleted)
    if ran.since is not None:
        lasted = _moment(ran.since).replace("<time", "<time data-mode=since")
    else:
        lasted = "–" if ran.before is None else short_duration_words(ran.before)
    uid, name = escape(stored.uid), escape(stored.name)
    url = escape(reverse("jobs:detail", args=[stored.namespace, stored.name]))
    cells = [
        # The box belongs to the form of bulk operations.
        f'<td><input type=checkbox form=bulk name=uid value="{uid}" aria-label="Tick {name}">' if selectable else "",
        f'<th scope=row><a href="{url}{f"?of={uid}" if deleted else ""}">{name}</a>',
        _brief(stored.namespace),
        f"<td>{_phase(progress.display_phase(job, deleted))}{tags}",
        f"<td{'' if is_plain else _title(gang.sentence)}>{svg.plain_stack(shares, gang.total)}{gang.short}",
        _brief(job.queue, "queue"),
        _brief(job.creator, "owner") if job.creator or not job.tool else f"<td class=soft>by {escape(job.tool)}",
        f"<td>{_moment(stored.created)}",
        f"<td>{lasted}",
        _why(job, health, is_deleted=bool(deleted)),
    ]
    # HTML allows leaving out end tags of cells and rows and quotes around a word: that saves a sixth of a long page.
    return mark_safe(f'<tr id="{escape(row_id(stored))}">{"".join(cells)}')  # noqa: S308  what the cells show is escaped


def _title(text: str) -> str:
    return f' title="{escape(text)}"'


def _brief(text: str, name: str = "") -> str:
    """Return a cell with a text, as a link to the filter `name` if given."""
    hint = _title(text) if len(text) > LONGEST_BRIEF else ""
    if not text:
        return "<td>–"
    content = f'<a href="?{escape(urlencode({name: text}))}">{escape(text)}</a>' if name else escape(text)
    return f"<td{hint}>{content}"


def _phase(word: str) -> str:
    if word in phases.JOB_PHASES:
        return f"<span class=phase data-phase={word}>{word}</span>"
    appearance = phases.appearance(word)
    return f'<span class=phase data-hue={appearance.hue} data-phase="{escape(word)}">{escape(word)}</span>'


def _moment(milliseconds: int) -> str:
    """Return a time in UTC as text, which the browser parses."""
    return f"<time>{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%d %H:%M:%SZ}</time>"


def _why(job: Job, health: Health, *, is_deleted: bool) -> str:
    state, ends = job.status.state, job.phase in progress.ENDING
    # While a job is stopping, its causes are older ones, kept for its last message.
    cause = "" if job.phase in lifecycle.STOPPING else job.status.causes.text
    message = state.message if is_deleted else state.text
    if state.reason == pod_health.PODS_KEPT and not ends:
        if not (health.troubled or is_deleted):
            return "<td>"
    elif health.text and not ends:
        cause, message = "", health.text
    elif job.phase in UNTROUBLED:
        return "<td>"
    if not cause:
        return f"<td{_title(message) if len(message) > LONGEST_CAUSE else ''}>{escape(message)}"
    title = f"{cause}. {state.summary}".rstrip() if len(cause) > LONGEST_CAUSE else state.summary
    return f"<td{_title(title)}>{escape(cause)}"
