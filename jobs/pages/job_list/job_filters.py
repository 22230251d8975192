"""The filters of the list of jobs: which values are valid, and the store's query for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.store.query import LABEL_OPERATORS
from dashboard.parts.moments import moment
from dashboard.parts.moments import problem as moment_problem
from kube.selector import SelectorError, parse_labels

__all__ = ["exit_code_problem", "label_problem", "moment_problem", "searched"]
HOUR_MS = 3600 * 1000
LATELY = {"1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS}
LATELY_WORDS = {"1h": "in the last hour", "24h": "in the last 24 hours", "7d": "in the last 7 days"}
HIGHEST_EXIT_CODE = 255


def label_problem(text: str) -> str:
    """Say what is wrong with a label selector; "" if jobs can be searched by it."""
    try:
        wanted = parse_labels(text).requirements
    except SelectorError as error:
        return f"{error}. Write team=vision, team, !team or team in (a,b)."
    if any(each.operator not in LABEL_OPERATORS for each in wanted):
        return "labels are compared with =, !=, in and notin; < and > cannot be used here."
    return ""


def exit_code_problem(text: str) -> str:
    """Say what is wrong with an exit code; "" if it is valid."""
    if text.isascii() and text.isdigit() and len(text) < 4 and 0 < int(text) <= HIGHEST_EXIT_CODE:
        return ""
    return f"“{text[:40]}” is no exit code of a failure; write a number from 1 to {HIGHEST_EXIT_CODE}."


def searched(values: Mapping[str, str], now: int) -> dict[str, Any]:
    """Return the store's filters for label, time, cause and exit code, given valid values."""
    starts = [moment(values["from"])] if values.get("from") else []
    if lately := values.get("created"):
        starts.append(now - LATELY[lately])
    return {
        "labels": parse_labels(values.get("label", "")).requirements,
        "since": max(starts, default=None),
        "until": moment(values["to"]) if values.get("to") else None,
        "cause": values.get("cause") or None,
        "exit_code": int(values["exit"]) if values.get("exit") else None,
    }
