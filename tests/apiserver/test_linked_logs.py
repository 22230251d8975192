"""What `pods/log` gives of this machine, it gives of another one: the same tests, by a link."""

from __future__ import annotations

import pytest

from tests.apiserver.client import linked
from tests.apiserver.test_logs import *  # noqa: F403
from tests.apiserver.test_logs import Pod

# These are about files.
del test_hundreds_of_followers_hold_no_threads  # noqa: F821
del test_parameters_that_do_not_hold_are_invalid  # noqa: F821


@pytest.fixture
def pod(server, settings, tmp_path):
    settings.DATA = tmp_path
    with linked(server, tmp_path):
        yield lambda **fields: Pod(tmp_path, **fields)
