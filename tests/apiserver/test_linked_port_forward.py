"""What port-forward does on this machine, it does on another one: the same tests, by a link."""

from __future__ import annotations

from tests.apiserver.test_linked_execs import way  # noqa: F401  in place of the one without a link
from tests.apiserver.test_port_forward import *  # noqa: F403
