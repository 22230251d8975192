"""`make kubernetes`: a cluster of Kubernetes' own programs, to try these pages with. It is gone when it is stopped."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
import time

import django


def main() -> None:
    """Run a cluster until Ctrl-C."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "proof.settings"
    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from proof.kubernetes.cluster import BUILT, PROGRAMS, Kubernetes  # which want settings

    folder = BUILT / "cluster"
    parser = argparse.ArgumentParser(prog="make kubernetes", description=__doc__)
    parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    shutil.rmtree(folder, ignore_errors=True)
    nodes = int(os.environ.get("VOLCANO_UI_NODES") or 3)
    say("• starting etcd, kube-apiserver, controllers, scheduler and kwok")
    try:
        with Kubernetes(folder, nodes=nodes) as cluster:
            say(f"Ready: {nodes} nodes and Volcano's kinds. Ctrl-C stops it, and nothing of it stays.\n")
            say(f"  make up KUBECONFIG={cluster.config}")
            say(f"  export KUBECONFIG={cluster.config}; {PROGRAMS['kubectl']} get nodes\n")
            while True:
                for program in cluster.programs:
                    program.check()
                time.sleep(1)
    except KeyboardInterrupt:
        say("Stopped.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
