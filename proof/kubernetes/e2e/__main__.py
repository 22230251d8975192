"""`make volcano-e2e`: run Volcano's own end-to-end suites against this system, and write docs/conformance-e2e.md.

The page is of one run of all of them. One that is stopped early writes it too, and names the suites that it did not get through. Suites
that are named are run without a page, so that two runs may share the work; `--again` writes it of what was last reported of each.

The suites are test binaries that the Makefile builds of a checkout of Volcano, with shorter waits, and with the name of the ConfigMap that
the scheduler reads here: theirs has another one, which their scheduler has by an option. It begins as theirs does.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import django

from proof.kubernetes.cluster import Kubernetes
from proof.kubernetes.e2e.report import Spec

# The order of the specs. With this one those of guarantees come last in schedulingaction: they leave queues behind, for which
# two CPUs are kept, and specs that come after them then lack these.
SEED = 14


def main() -> int:
    """Run the suites and return 1 when a spec fails for which no reason is known."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "proof.settings"
    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from proof.kubernetes.e2e import report, world  # which want settings
    from proof.systems.system import PROJECT

    built = PROJECT / ".cache" / "volcano-e2e"
    parser = argparse.ArgumentParser(prog="make volcano-e2e", description=__doc__)
    parser.add_argument("suites", nargs="*", help="names of suites, all of them by default")
    parser.add_argument("--focus", default="", help="a pattern of specs; then nothing is written")
    parser.add_argument(
        "--again",
        action="store_true",
        help="run what failed in the last run for no known reason, and add it to the page",
    )
    chosen = parser.parse_args()
    if chosen.again and (chosen.suites or chosen.focus):
        parser.error("--again runs what failed in the last run of all; give it no suites and no --focus.")
    whole = not chosen.suites and not chosen.focus
    suites = chosen.suites or report.SUITES
    if chosen.again:
        to_run = _unexplained(report.first(built, suites))
    else:
        to_run = dict.fromkeys(suites, chosen.focus)
        report.forget(built, suites)
    folder = Path(tempfile.mkdtemp(prefix="world-", dir=built))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if to_run:
            say("• starting a Kubernetes of played nodes, and this system on it")
            with world.ready(folder, (built / "volcano-scheduler-ci.conf").read_text()) as (cluster, _):
                for suite, focus in to_run.items():
                    say(f"• {suite}")
                    run(suite, cluster, built, focus, again=chosen.again)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        specs = report.read(built, suites)
        for line in report.summary(specs):
            say(line)
        if whole and (times := report.times(built)):
            page = report.page(specs, (built / "commit").read_text().strip(), times)
            (PROJECT / "docs" / "conformance-e2e.md").write_text(page)
    return 1 if any(spec.is_unexplained for spec in specs) else 0


def _unexplained(specs: Iterable[Spec]) -> dict[str, str]:
    """Return a pattern of the specs that failed for no known reason, by their suites."""
    found: dict[str, list[str]] = {}
    for spec in specs:
        if spec.is_unexplained:
            found.setdefault(spec.suite, []).append(re.escape(spec.name))
    return {suite: f"({'|'.join(names)})$" for suite, names in found.items()}


def run(suite: str, cluster: Kubernetes, built: Path, focus: str, *, again: bool = False) -> None:
    """Run the specs of a suite but for those that want real volumes; what it prints goes to a file."""
    from proof.kubernetes.e2e.report import LEFT_OUT, path_of
    from proof.kubernetes.volcano import BUILT

    report_path = path_of(built, suite, again=again)
    command = [
        str(built / f"{suite}.test"),
        f"--ginkgo.json-report={report_path}",
        f"--ginkgo.skip={'|'.join(LEFT_OUT)}",
        f"--ginkgo.focus={focus}",
        f"--ginkgo.seed={SEED}",
        "--ginkgo.timeout=3h",
        "--ginkgo.v",
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cluster.folder),
        "KUBECONFIG": str(cluster.config),
        "VC_BIN": str(BUILT),
        "ARTIFACTS_PATH": str(built / "artifacts"),
    }
    with report_path.with_suffix(".txt").open("w") as output:
        subprocess.run(command, env=environment, cwd=cluster.folder, stdout=output, stderr=output, check=False)


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
