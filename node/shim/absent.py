"""What is said of a program that a container wants and its machine does not have: pure.

Containers run the machine's own programs, whatever image they name. So what is
there on Kubernetes by way of the image may be missing, and who reads of it is
told where to put it.
"""

from __future__ import annotations

import re

from node.rules import programs

EXIT_CODE = 127  # by POSIX, what a shell or `env` ends with when a command is not found
TAIL_BYTES = 1000  # how much of its last words is looked at
_NOT_FOUND = re.compile(r"not found|No such file or directory")
_NAME = re.compile(r"([^\s:'\"‘’]+)['\"’]?: (?:command )?(?:not found|No such file or directory)")


def explained(problem: str, program: str, node: str) -> str:
    """Return what was not found, with the remedies, the shortest first, and the node that does not have it; a node without a name is not told."""
    if not node:
        return problem
    return (
        f"{problem}; give another command, or install {programs.to_install(program)} on node {node}, "
        "whose programs containers run, whatever their image"
    )


def by_a_shell(exit_code: int, last_words: bytes, node: str) -> str:
    """Return why a shell ended that did not find a program, "" for any other end.

    Its last words are the newest of what it wrote to standard error:
    `sh: 1: ray: not found`.
    """
    if exit_code != EXIT_CODE:
        return ""
    lines = last_words.decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if _NOT_FOUND.search(line)]
    if not said:
        return ""
    named = _NAME.search(said[-1])
    return explained(said[-1], named[1].rpartition("/")[2] if named else "", node)
