"""The command `volcano-ui` of an installation; in a clone there are make and manage.py."""

from __future__ import annotations

import sys
from importlib import import_module

from cluster.version import VERSION

# They are not Django's commands, because these load more than the servers use.
SERVERS = {"web": "volcano_ui.web", "apiserver": "volcano_ui.apiserver", "webhooks": "volcano_ui.webhooks"}
HELP = """\
volcano-ui: batch jobs, and the dashboard for them

  volcano-ui up           start everything on this machine; Ctrl-C stops it
  volcano-ui loginlink    print a one-time link that logs in
  volcano-ui kubeconfig   write a kubeconfig for kubectl and programs
  volcano-ui jointoken    print the command by which another machine becomes a node
  volcano-ui check        look at the settings; --deploy looks harder
  volcano-ui help         list all commands

Each of the processes that up starts, by itself, where something else supervises them:
  volcano-ui web | apiserver | webhooks | beat | agent | worker jobs | worker controllers | worker scheduler

volcano-ui COMMAND --help lists the options of each. Settings come from the environment, as VOLCANO_UI_…;
all data are in VOLCANO_UI_DATA, by default in ~/.local/share/volcano-ui."""


def main() -> None:
    """Print version or help, or run a server or one of Django's commands."""
    arguments = sys.argv[1:2]
    if arguments == ["--version"]:
        print(f"volcano-ui {VERSION}")  # noqa: T201
    elif arguments in ([], ["-h"], ["--help"]):
        print(HELP)  # noqa: T201
    elif arguments and arguments[0] in SERVERS:
        sys.argv = [f"volcano-ui {arguments[0]}", *sys.argv[2:]]
        import_module(SERVERS[arguments[0]]).main()
    else:
        import manage

        manage.main()
