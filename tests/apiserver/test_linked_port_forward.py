"""What port-forward does on this machine, it does on another one: the same tests, by a link."""

from __future__ import annotations

from tests.apiserver import test_linked_execs
from tests.apiserver.test_port_forward import *  # noqa: F403

running = test_linked_execs.running  # in place of the one without a link
