"""Certificates of the webhooks: renewed in time, one for all who answer, kept in the cluster by who leads, and known before they are shown."""

import asyncio
import itertools
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from cluster import clock, issuing
from cluster.models import MirroredCluster
from cluster.remote import recorder
from cluster.remote.door import server
from cluster.remote.leader_election import election
from cluster.remote.leader_election.election import Leadership
from cluster.remote.webhooks import hooks
from cluster.remote.webhooks import keys as keeping
from cluster.remote.webhooks.hooks import Address
from cluster.remote.webhooks.keeper import SECRET, Keeper
from cluster.remote.webhooks.rotation import Held, Lives, Span, Step, next_step
from cluster.remote.webhooks.served import Served
from kube.errors import Forbidden
from proof.harness.waiting import HANG_S
from tests.blocks import blocks
from tests.campaign import examples
from tests.cluster.objects import of_values
from tests.cluster.remote.servers import ObjectServer, connected
from tests.tables import cases

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 23, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LIVES = Lives()
NAMES = frozenset({"webhooks.pages.svc"})


UNITS = {"d": DAY, "h": HOUR}


def step(held, is_trusted):
    """What comes next: of authorities and a certificate by their ages, of which authority that is, for which name."""
    if held is not None:
        *authorities, server = (
            float(age[:-1]) * UNITS[age[-1]] for age in [*held["authorities"], held.get("server", "1d")]
        )
        spans = tuple(Span(NOW - age, NOW - age + LIVES.authority) for age in authorities)
        server = Span(NOW - server, NOW - server + LIVES.server)
        held = Held(spans, server, held.get("issuer", 0), frozenset({held["name"]}) if "name" in held else NAMES)
    return next_step(held, NAMES, NOW, LIVES, is_trusted=is_trusted).name


@blocks("rotation", folder="cluster")
def test_next_step(block, golden):
    golden(block, of_values(step))


def trusted(bundle, server, moment):
    return server.not_valid_before_utc <= moment <= server.not_valid_after_utc and any(
        issuing.is_issued_by(server, each) and each.not_valid_after_utc > moment for each in bundle
    )


@examples(100, here=15)
@given(st.lists(st.integers(1, 3), min_size=20, max_size=60))
def test_whoever_is_a_look_behind_trusts_and_is_trusted_at_every_moment(quarters):
    """API servers and processes hear of what is new one after the other: any of them may be where all were a look ago."""
    lives = Lives(authority=12 * HOUR, server=6 * HOUR, overlap=HOUR)
    now, keys = NOW, keeping.after(None, Step.BEGIN, NAMES, NOW, lives)
    for number in quarters:
        now += number * timedelta(minutes=15)
        step = next_step(keys.held(), NAMES, now, lives, is_trusted=True)
        before, keys = keys, keeping.after(keys, step, NAMES, now, lives)
        for one, other in itertools.product((before, keys), repeat=2):
            assert trusted(one.authorities, other.server[0], now)
        assert len(keys.authorities) <= 2


BEGUN = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES)


def test_secret_holds_all_that_is_needed_to_go_on():
    keys = BEGUN
    for step in (Step.AUTHORITY, Step.SERVER):
        keys = keeping.after(keys, step, NAMES, NOW + 250 * DAY, LIVES)
    again = keeping.read({"data": keys.data()})
    assert again.held() == keys.held()
    assert (again.bundle, again.data()) == (keys.bundle, keys.data())
    issued = keeping.after(again, Step.SERVER, NAMES, NOW + 251 * DAY, LIVES)
    assert issuing.is_issued_by(issued.server[0], keys.authority[0])


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@cases("value", {"missing": None, "empty": "", "no base64": "!", "no PEM": "bm9uZQ=="})
def test_secret_that_is_broken_holds_nothing(field, value):
    data = {**BEGUN.data(), field: value}
    assert keeping.read({"data": {name: text for name, text in data.items() if text is not None}}) is None


def test_certificate_is_for_the_address_no_longer_than_its_authority_and_of_no_use_to_another():
    other = keeping.after(None, Step.BEGIN, NAMES, NOW, LIVES)
    assert BEGUN._replace(server=other.server).held() is None
    server = keeping.after(None, Step.BEGIN, {"192.0.2.7"}, NOW, Lives(authority=10 * DAY)).server[0]
    (name,) = issuing.names_of(server)
    assert (str(name.value), isinstance(name, x509.IPAddress)) == ("192.0.2.7", True)
    assert server.not_valid_after_utc == NOW + 10 * DAY


ADDRESS = Address("webhooks.pages.svc", 443)


@pytest.fixture
def cluster(tmp_path, settings):
    settings.WAY, settings.LEASE_NAMESPACE = "in-place", "volcano-system"
    with connected(ObjectServer(), tmp_path, settings) as running:
        recorder.claim("https://one")
        lead()
        yield running


def lead(*, ours=True):
    until = clock.milliseconds() + 60_000
    election.note(Leadership("me", "me/0", until) if ours else Leadership("other", hindrance="another one"))
    if not ours:
        MirroredCluster.objects.update(term="")


def keeper(address=ADDRESS):
    return Keeper(server.connection, address, Lives())


def bundles(cluster):
    """The authorities that the API server was told of, one text for each webhook."""
    configurations = cluster.named(hooks.NAME).values()
    return {each["clientConfig"]["caBundle"] for configuration in configurations for each in configuration["webhooks"]}


def test_certificate_is_made_once_shown_by_all_and_made_known_once(cluster):
    one = keeper()
    keys = one.look(NOW)
    assert keeper().look(NOW + HOUR).data() == keys.data()
    secret = cluster.named(SECRET)["secrets"]
    assert (secret["type"], secret["data"]) == ("kubernetes.io/tls", keys.data())
    assert secret["metadata"]["namespace"] == "volcano-system"
    one.publish(keys)
    assert set(cluster.named(hooks.NAME)) == {plural for _, plural in hooks.KINDS.values()}
    assert bundles(cluster) == {keys.bundle}
    [condition] = cluster.named(hooks.NAME)["mutatingwebhookconfigurations"]["webhooks"][0]["matchConditions"]
    assert 'username == "pages"' in condition["expression"]
    before = cluster.version
    one.publish(keys)
    keeper().publish(keys)
    assert cluster.version == before


def test_configurations_that_an_administrator_has_brought_are_filled_in(cluster):
    for kind, plural in hooks.KINDS.values():
        metadata = {"name": hooks.NAME, "labels": {"a": "b"}}
        empty = {"apiVersion": hooks.GROUP_VERSION, "kind": kind, "metadata": metadata}
        cluster.put(f"/apis/{hooks.GROUP_VERSION}/{plural}/{hooks.NAME}", empty)
    cluster.denied["POST", "webhookconfigurations"] = 403
    one = keeper()
    one.publish(one.look(NOW))
    found = cluster.named(hooks.NAME)["validatingwebhookconfigurations"]
    assert found["metadata"]["labels"] == {"a": "b"}
    assert len(found["webhooks"]) == sum(each.verb == "validate" for each in hooks.WEBHOOKS)


def test_new_authority_is_known_for_an_hour_before_it_issues_what_is_shown(cluster):
    one, other = keeper(), keeper()
    first = one.look(NOW)
    one.publish(first)
    due = NOW + 250 * DAY
    served = one.look(due - 10 * DAY).server  # renewed by the old authority meanwhile
    both = one.look(due)
    assert (len(both.authorities), both.server[0]) == (2, served[0])
    assert bundles(cluster) == {first.bundle}
    assert other.look(due + 2 * HOUR).server[0] == served[0], "the cluster was not told yet"
    other.publish(both)
    assert bundles(cluster) == {both.bundle}
    current = one.look(due + 2 * HOUR)
    assert (current.bundle, current.server[0] != served[0]) == (both.bundle, True)
    assert one.look(due + 2.5 * HOUR).bundle == both.bundle
    last = other.look(due + 3 * HOUR)
    assert (len(last.authorities), last.server[0]) == (1, current.server[0])


def test_who_does_not_lead_shows_what_is_there_and_writes_nothing(cluster):
    lead(ours=False)
    one = keeper()
    assert (one.look(NOW), cluster.objects) == (None, {})
    lead()
    made = keeper().look(NOW)
    lead(ours=False)
    found = one.look(NOW + 300 * DAY)
    assert found.data() == made.data()
    one.publish(found)
    assert cluster.named(hooks.NAME) == {}


def test_who_was_slower_takes_what_the_other_made(cluster):
    quicker = keeper()

    class Slow(Keeper):
        def _save(self, before, keys):
            quicker.look(NOW)
            super()._save(before, keys)

    assert Slow(server.connection, ADDRESS).look(NOW).data() == quicker.look(NOW).data()


def test_what_is_shown_lies_in_files_of_which_the_key_is_the_owners_alone(cluster, tmp_path):
    served = Served(keeper(), tmp_path / "webhooks")
    served.await_first()
    served.show()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(served.certificate, served.key)
    assert served.key.stat().st_mode & 0o077 == 0
    written = served.certificate.stat().st_mtime_ns
    assert served.look()
    served.show(context)
    assert served.certificate.stat().st_mtime_ns == written, "it is no other certificate"


def test_why_nothing_can_be_kept_is_told_once_until_it_is_well_again(cluster, tmp_path, caplog):
    served = Served(keeper(), tmp_path)
    for _ in range(2):
        cluster.denied["POST", "/secrets"] = 403
        with pytest.raises(Forbidden):
            keeper().look(NOW)
        assert [served.look(), served.look()] == [False, False]
        assert MirroredCluster.objects.get().webhooks == "not you"
        cluster.denied.clear()
        assert [served.look(), served.publish()] == [True, True]
        assert MirroredCluster.objects.get().webhooks == ""
        cluster.objects = {path: obj for path, obj in cluster.objects.items() if "secrets" not in path}
    assert [each.error for each in caplog.records if each.msg == "the webhooks cannot be kept"] == ["not you"] * 2


@pytest.mark.django_db(transaction=True)
async def test_what_cannot_be_written_is_tried_again(cluster, tmp_path, caplog):
    (tmp_path / "file").touch()
    served = Served(keeper(), tmp_path / "file" / "webhooks", every_s=0.01)
    keeping = asyncio.create_task(served.keep(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)))
    async with asyncio.timeout(HANG_S):
        while "the certificate could not be shown" not in caplog.text:
            await asyncio.sleep(0.01)
        (tmp_path / "file").unlink()
        while not (served.certificate.exists() and cluster.named(hooks.NAME)):
            await asyncio.sleep(0.01)
    keeping.cancel()
