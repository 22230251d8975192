"""Requests that a server refuses or answers with a Status: `requests.txt`. What it says is `statuses.json`, beside it.

A kube-apiserver says it: `tests/kubernetes/test_golden.py` compares them, and writes the file with `--update-golden`.
"""

import json
import re

from tests.apiserver.story import JSON, read
from tests.tables import lines

SOMEBODY = "ann"  # who is known and may do nothing
LARGEST = 3 * 1024 * 1024
ANSWERED = "requests that are answered with a Status"
THERE = [read(each.given) for each in lines("kubernetes/requests", "what is there before")]
CASES = {each.words: read(each.given) for each in lines("kubernetes/requests", ANSWERED)}
CASES["413 a body"] = read("POST configmaps")._replace(body={"metadata": {"name": "a"}, "data": {"a": "x" * LARGEST}})


def seen(answer):
    """Return what an answer says, without what is of each."""
    text = re.sub(r"(current: |audit-id: |in record \()\d+\b(?!-)", r"\1N", answer.text)
    text = re.sub(r"(in record \()[-0-9a-f]{36}", r"\1UID", text)
    kind = answer.headers.get("content-type", "").partition(";")[0]
    body = json.loads(text) if kind == JSON else text
    if isinstance(body, dict) and body.get("details", {}).get("uid"):
        body["details"]["uid"] = "UID"
    found = {"code": answer.status_code, "type": kind, "said": body}
    if "retry-after" in answer.headers:
        found["retry-after"] = answer.headers["retry-after"]
    return found
