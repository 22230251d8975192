"""Take the pictures of the README from a running system: `make screenshots`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.system.harness import PROJECT, System

FOLDER = PROJECT / "docs" / "screenshots"
SIZE = {"width": 1280, "height": 800}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main():
    from jobs.editor.samples import SAMPLES

    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        System(Path(folder) / "data", nodes=6) as system,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        light = browser.new_context(viewport=SIZE, color_scheme="light")
        page = light.new_page()
        page.goto(system.link)
        jobs = {slug: run(page, system, slug) for slug in SAMPLES}
        dark = browser.new_context(viewport=SIZE, color_scheme="dark", storage_state=light.storage_state())
        pictures(system, jobs, {"light": light, "dark": dark})
        browser.close()


def run(page, system, slug):
    """Run a sample and return its job's address."""
    page.goto(f"{system.base}/jobs/new/?sample={slug}")
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url("**/jobs/default/*/")
    return page.url


def pictures(system, jobs, themes):
    slugs = list(jobs)
    wanted = {
        "job": jobs[slugs[0]],
        "failed": jobs[slugs[1]],
        "waiting": jobs[slugs[2]],
        "new": f"{system.base}/jobs/new/?sample={slugs[0]}",
        "jobs": f"{system.base}/jobs/",
        "overview": f"{system.base}/",
        "queues": f"{system.base}/queues/",
        "nodes": f"{system.base}/nodes/",
    }
    for theme, context in themes.items():
        page = context.new_page()
        page.goto(wanted["job"])
        page.get_by_text("Completed", exact=True).first.wait_for(timeout=60_000)
        for name, address in wanted.items():
            page.goto(address)
            page.get_by_text("live", exact=True).or_(page.get_by_text("as of")).first.wait_for()
            page.screenshot(path=FOLDER / f"{name}-{theme}.png")
            sys.stdout.write(f"docs/screenshots/{name}-{theme}.png\n")


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")
    import django

    django.setup()
    main()
