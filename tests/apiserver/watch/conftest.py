import pytest

from apiserver import watch
from tests.apiserver.watch import world


@pytest.fixture
async def port(transactional_db, redis):
    async with world.serving() as number:
        yield number


keeper = pytest.fixture(name="keeper")(lambda: watch.keeper)
board = pytest.fixture(name="board")(lambda: watch.board)
follower = pytest.fixture(name="follower")(lambda: watch.follower)
