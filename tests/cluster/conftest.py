import pytest

from tests.cluster.api.conftest import admin, cluster, person
from tests.schemas import emptied_at_the_end, migrated_schema

__all__ = ["admin", "cluster", "person"]


@pytest.fixture
def golden(request):
    """A function that compares a block with what is said of each of its lines; `pytest --update-golden` writes it anew."""
    return lambda block, answer: block.compare(block.with_answer(answer), request.config)


@pytest.fixture(scope="module")
def schema(postgres_url, django_db_blocker):
    """The settings of a schema of PostgreSQL with our tables, which goes away."""
    with django_db_blocker.unblock(), migrated_schema(postgres_url, "rivals") as values:
        yield values


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, transactional_db):
    """The default database on each back end."""
    if request.param == "sqlite":
        yield
        return
    with emptied_at_the_end(request.getfixturevalue("schema")):
        yield
