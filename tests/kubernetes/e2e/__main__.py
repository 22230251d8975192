"""`make volcano-e2e`: run Volcano's own end-to-end suites against this system, and write docs/conformance-e2e.md.

The suites are test binaries that the Makefile builds of a checkout of Volcano, with shorter waits, and with the name of the ConfigMap that
the scheduler reads here: theirs has another one, which their scheduler has by an option. It begins as theirs does.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import subprocess
import sys

import django


def main():
    """Run the suites and return 1 when a spec fails for which no reason is known."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from tests.kubernetes.e2e import report, world  # which want settings
    from tests.system.harness import PROJECT

    built = PROJECT / ".cache" / "volcano-e2e"
    parser = argparse.ArgumentParser(prog="make volcano-e2e", description=__doc__)
    parser.add_argument("suites", nargs="*", help="names of suites, all of them by default")
    parser.add_argument("--focus", default="", help="a pattern of specs; then nothing is written")
    chosen = parser.parse_args()
    folder = built / "world"
    shutil.rmtree(folder, ignore_errors=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say("• starting a Kubernetes of played nodes, and this system on it")
    try:
        with world.ready(folder, (built / "volcano-scheduler-ci.conf").read_text()) as (cluster, _):
            for suite in chosen.suites or report.SUITES:
                say(f"• {suite}")
                run(suite, cluster, built, chosen.focus)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    specs = report.read(built, chosen.suites or report.SUITES)
    for line in report.summary(specs):
        say(line)
    if not chosen.suites and not chosen.focus:
        (PROJECT / "docs" / "conformance-e2e.md").write_text(
            report.page(specs, (built / "commit").read_text().strip())
        )
    return 1 if any(spec.is_unexplained for spec in specs) else 0


def run(suite, cluster, built, focus):
    """Run the specs of a suite but for those that want real volumes; what it prints goes to a file."""
    from tests.kubernetes.e2e.report import LEFT_OUT
    from tests.kubernetes.volcano import BUILT

    command = [
        built / f"{suite}.test",
        f"--ginkgo.json-report={built / f'{suite}.json'}",
        f"--ginkgo.skip={'|'.join(LEFT_OUT)}",
        f"--ginkgo.focus={focus}",
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
    with (built / f"{suite}.txt").open("w") as output:
        subprocess.run(
            command, env=environment, cwd=cluster.folder, stdout=output, stderr=output, check=False
        )


def say(line):
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
