"""The pages of the furnished system, and pictures of them: `python -m proof.pictures.pages FOLDER [NAME…]`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from proof.systems.system import System

PAGES = {
    "overview": "/",
    "jobs": "/jobs/",
    "jobs, none found": "/jobs/?q=nothing-has-this-name",
    "Jobs of batch v1": "/jobs/-/kubernetes/",
    "Job of batch v1": "/jobs/default/pi/",
    "new job": "/jobs/new/",
    "form with policies": "/jobs/new/?from=default/restarted",
    "running job": "/jobs/default/running/",
    "job with policies": "/jobs/default/guarded/",
    "waiting job": "/jobs/default/waiting/",
    "completed job": "/jobs/default/finished/",
    "failed job": "/jobs/default/failed/",
    "simulated job": "/jobs/default/sweep/",
    "crash-looping job": "/jobs/default/loops/",
    "preempted job": "/jobs/default/preempted/",
    "job that preempted": "/jobs/default/urgent/",
    "decisions about a preempted job": "/jobs/default/preempted/?tab=decisions",
    "moved job": "/jobs/default/moved/",
    "job that waits for a quota": "/jobs/team/bounded/",
    "job that waits for a revocable zone": "/jobs/default/nightly-only/",
    "job that waits for a HyperNode": "/jobs/default/close-together/",
    "job with a reservation": "/jobs/default/patient/",
    "job restarted twice": "/jobs/default/restarted/",
    "earlier run of a job": "/jobs/default/resumed/?run=1",
    "log of an earlier run": "/jobs/default/resumed/?run=1&tab=logs",
    "deleted job": "/jobs/default/gone/",
    "deleted jobs": "/jobs/?phase=Deleted",
    "log": "/jobs/default/running/?tab=logs",
    "logs of a task together": "/jobs/default/resumed/?tab=logs&pod=task/main",
    "logs of a job that is gone": "/jobs/default/gone/?tab=logs",
    "decisions about a job": "/jobs/default/running/?tab=decisions",
    "decisions about a deleted job": "/jobs/default/gone/?tab=decisions",
    "events of a job": "/jobs/default/failed/?tab=events",
    "YAML of a job": "/jobs/default/failed/?tab=yaml",
    "suspend a job": "/jobs/default/running/suspend/",
    "edit a job": "/jobs/default/guarded/edit/",
    "scale a job": "/jobs/default/running/scale/",
    "restart a job": "/jobs/default/running/restart/",
    "resume a job": "/jobs/default/running/resume/",
    "complete a job": "/jobs/default/running/complete/",
    "terminate a job": "/jobs/default/running/terminate/",
    "delete a job": "/jobs/default/running/delete/",
    "bulk operations": "/jobs/-/operations/",
    "bulk operation, not confirmed": "/jobs/-/operations/1/",
    "bulk operation": "/jobs/-/operations/2/",
    "sweeps": "/sweeps/",
    "sweep": "/sweeps/default/tuning/",
    "sweep in rows": "/sweeps/default/tuning/?value-rate=1",
    "new sweep": "/sweeps/-/new/",
    "template form": "/jobs/-/templates/mpi/",
    "new template": "/jobs/-/templates/",
    "flows": "/flows/",
    "flow": "/flows/default/nightly/",
    "job templates": "/flows/-/templates/",
    "job template": "/flows/-/templates/default/extract/",
    "cron jobs": "/cronjobs/",
    "cron job": "/cronjobs/default/report/",
    "queues": "/queues/",
    "queue": "/queues/training/",
    "edit a queue": "/queues/training/edit/",
    "new queue": "/queues/-/new/",
    "scheduler": "/queues/-/scheduler/",
    "decisions": "/queues/-/scheduler/decisions/",
    "nodes": "/nodes/",
    "node": "/nodes/sim-0001/",
    "network": "/network/",
    "events": "/events/",
    "audit": "/audit/",
    "access": "/access/",
    "connect": "/connect/",
    "add a machine": "/nodes/-/new/",
    "password": "/password/",
    "not found": "/no/such/page/",
    "login": "/login/",
}
PUBLIC = ("login",)
LOOKS = {"light": ("light", 1360), "dark": ("dark", 1360), "narrow": ("light", 390)}  # theme and width


def main(folder: str, *names: str) -> None:
    """Bring a furnished system up and take pictures of each page: wide in both themes, and narrow."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "volcano_ui.settings"
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    import django

    django.setup()
    from proof.harness import chromium
    from proof.pictures import world
    from proof.systems.system import System

    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="volcano-ui-pictures-") as data,
        System(Path(data) / "data", nodes=12) as system,
        chromium.launched() as browser,
    ):
        world.furnish(system)
        for name in names or PAGES:
            for look, (theme, width) in LOOKS.items():
                picture(
                    browser,
                    system,
                    theme,
                    width,
                    PAGES[name],
                    directory / f"{_plain(name)}-{look}.png",
                    public=name in PUBLIC,
                )


def picture(
    browser: Browser, system: System, theme: str, width: int, address: str, file: Path, *, public: bool
) -> None:
    """Take a picture of a whole page."""
    from proof.pictures import world

    context = world.enter(browser, system, theme=theme, cookies={} if public else None)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 860})
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file, full_page=True)
    context.close()


def _plain(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    main(*sys.argv[1:])
