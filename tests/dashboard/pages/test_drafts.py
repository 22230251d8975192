"""The server's part of drafts: which draft a form is, and which one was submitted."""

from __future__ import annotations

import pytest

from tests.dashboard.pages.conftest import Page, page

pytestmark = pytest.mark.usefixtures("cluster")
DRAFT = "0123456789abcdef"


def toast(browser, address):
    return page(browser, address).one(id="toasts").find("*")


def test_success_hands_the_draft_back_and_a_refusal_keeps_it(admin):
    refused = admin.post("/queues/-/new/", {"name": "-", "weight": "1", "draft": DRAFT})
    form = Page(refused).one(tag="form", **{"data-draft": "new queue"})
    assert form.get("data-draft-id") == DRAFT
    answer = admin.post("/queues/-/new/", {"name": "lab", "weight": "1", "draft": DRAFT})
    assert toast(admin, answer["Location"]).get("data-draft") == DRAFT


@pytest.mark.parametrize("sent", ["", "x" * 16, '"><script>', DRAFT + "0"], ids=["none", "letters", "markup", "long"])
def test_what_is_no_id_of_a_draft_is_not_handed_back(admin, sent):
    answer = admin.post("/queues/-/new/", {"name": "lab", "weight": "1", "draft": sent})
    assert toast(admin, answer["Location"]).get("data-draft") is None
