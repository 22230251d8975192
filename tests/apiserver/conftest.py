import pytest

from cluster.store import Create, store
from kube import resources
from tests.apiserver.client import Api, serving
from tests.apiserver.story import Story
from tests.cluster.api.conftest import namespace, person, queue  # noqa: F401  person is a fixture
from tests.node.conftest import machine as node  # noqa: F401  a node whose agent the test drives


@pytest.fixture
def cluster(transactional_db):
    """The namespaces default and other, and an open queue."""
    kind = resources.NAMESPACES
    store.write(Create(kind, namespace("default")), Create(kind, namespace("other")))
    store.write(Create(resources.QUEUES, queue("default")))


@pytest.fixture
def server(cluster, redis):
    with serving() as url:
        yield url


@pytest.fixture
def api(server):
    return Api(server)


@pytest.fixture
def story(api, person):  # noqa: F811
    """Requests of a client that may do everything, and of people."""
    return Story(api, person)
