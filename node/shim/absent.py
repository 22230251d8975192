"""The message about a program that a container wants and its machine does not have: pure.

Containers run the machine's own programs, whatever image they name. So what
comes with the image on Kubernetes may be missing here, and the message says
where to install it.
"""

from __future__ import annotations

import re

from node.rules import programs

EXIT_CODE = 127  # by POSIX, what a shell or `env` ends with when a command is not found
TAIL_BYTES = 1000  # how much of the end of its error output is searched
_NOT_FOUND = re.compile(r"not found|No such file or directory")
_NAME = re.compile(r"([^\s:'\"‘’]+)['\"’]?: (?:command )?(?:not found|No such file or directory)")


def explained(problem: str, program: str, node: str) -> str:
    """Return what was not found, with the remedies, the shortest first, and the node that lacks it where it has a name."""
    if not node:
        return problem
    return (
        f"{problem}; give another command, or install {programs.to_install(program)} on node {node}, "
        "whose programs containers run, whatever their image"
    )


def shell_message(exit_code: int, error_tail: bytes, node: str) -> str:
    """Return why a shell ended that did not find a program, "" for any other end.

    The end of what it wrote to standard error says so: `sh: 1: ray: not found`.
    """
    if exit_code != EXIT_CODE:
        return ""
    lines = error_tail.decode(errors="replace").split("\n")
    messages = [line.strip() for line in lines if _NOT_FOUND.search(line)]
    if not messages:
        return ""
    program = _NAME.search(messages[-1])
    return explained(messages[-1], program[1].rpartition("/")[2] if program else "", node)
