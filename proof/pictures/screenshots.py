"""Take the pictures of the README from a running system: `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, ViewportSize

from proof.systems.system import PROJECT, System

FOLDER = PROJECT / "docs" / "screenshots"
SIZE: ViewportSize = {"width": 1280, "height": 800}


def main() -> None:
    """Run the samples on a system, and take pictures of its pages in both themes."""
    from jobs.pages.editor.samples import SAMPLES
    from proof.harness import chromium

    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        System(Path(folder) / "data", nodes=6) as system,
        chromium.launched() as browser,
    ):
        light = browser.new_context(viewport=SIZE, color_scheme="light")
        page = light.new_page()
        page.goto(system.link)
        dark = browser.new_context(viewport=SIZE, color_scheme="dark", storage_state=light.storage_state())
        themes = {"light": light, "dark": dark}
        # Before there are jobs, so that no name is taken.
        sample = next(iter(SAMPLES))
        take(themes, "new", f"{system.base}/jobs/new/?sample={sample}", "This job would be accepted")
        pictures(system, {slug: run(page, system, slug) for slug in SAMPLES}, themes)


def run(page: Page, system: System, slug: str) -> str:
    """Run a sample and return its job's address."""
    page.goto(f"{system.base}/jobs/new/?sample={slug}")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/*/")
    return page.url


def pictures(system: System, jobs: Mapping[str, str], themes: Mapping[str, BrowserContext]) -> None:
    """Take the pictures, once the first sample has run to its end."""
    slugs = list(jobs)
    wanted = {
        "job": jobs[slugs[0]],
        "failed": jobs[slugs[1]],
        "waiting": jobs[slugs[2]],
        "jobs": f"{system.base}/jobs/",
        "overview": f"{system.base}/",
        "queues": f"{system.base}/queues/",
        "nodes": f"{system.base}/nodes/",
    }
    page = themes["light"].new_page()
    page.goto(wanted["job"])
    page.get_by_text("Completed", exact=True).first.wait_for(timeout=60_000)
    for name, address in wanted.items():
        take(themes, name, address, "live")


def take(themes: Mapping[str, BrowserContext], name: str, address: str, sign: str) -> None:
    """Take a picture of a page in each theme, once it says what shows that all of it is there."""
    for theme, context in themes.items():
        page = context.new_page()
        page.goto(address)
        page.get_by_text(sign, exact=sign == "live").first.wait_for()
        page.screenshot(path=FOLDER / f"{name}-{theme}.png")
        page.close()
        sys.stdout.write(f"docs/screenshots/{name}-{theme}.png\n")


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")
    import django

    django.setup()
    main()
