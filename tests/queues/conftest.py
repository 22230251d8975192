import pytest

from cluster.bootstrap import bootstrap
from tests.dashboard.pages.conftest import _picture, admin, alice, cluster, operator
from tests.queues.story import Controller
from tests.reading import reads
from tests.scheduler.conftest import golden

__all__ = ["_picture", "admin", "alice", "cluster", "golden", "operator", "reads"]


@pytest.fixture
def controller(transactional_db, moved_clock):
    bootstrap()
    controller = Controller(moved_clock)
    controller.later()
    return controller
