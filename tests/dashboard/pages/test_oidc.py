"""Logging in at a provider, with a real one that runs beside the test."""

import base64

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from cluster.access import identities
from cluster.models import AuditEntry, Identity, RoleBinding
from cluster.several.entries import Entry
from dashboard.accounts import provider as ours
from dashboard.accounts.views import registered_address
from proof.harness.provider import CLIENT, SECRET, running
from tests.dashboard.pages.conftest import Page, page, reader
from tests.tables import cases

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(settings):
    with running() as started:
        settings.OIDC_ISSUER, settings.OIDC_NAME = started.issuer, "Lab login"
        settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET = CLIENT, SECRET
        yield started
        ours._provider.cache_clear()


def at_provider(address, name, answer="yes"):
    """Log in at the provider's page; return the address to which it sends the browser back."""
    assert "Who are you?" in httpx.get(address).text
    return httpx.post(address, data={"name": name, "answer": answer}).headers["location"]


def arrives(browser, name="alice", answer="yes", following=""):
    """Log in at the provider and come back; return the answer here, which may be that nobody is sent there."""
    begun = browser.get("/login/oidc/", {"next": following} if following else {})
    return returns(browser, begun["location"], name, answer) if begun.status_code == 302 else begun


def returns(browser, address, name="alice", answer="yes"):
    return browser.get(at_provider(address, name, answer).removeprefix("http://testserver"))


def link(document, words):
    """Return where a link leads."""
    return next(each.get("href") for each in document.all(tag="a") if words in "".join(each.itertext()))


def says(answer, code, *words):
    """Assert that an answer has a code and these words."""
    text = Page(answer).text(tag="main")
    assert (answer.status_code, [each for each in words if each not in text]) == (code, []), text


def connects(browser):
    """Return the address at which somebody who is logged in connects his account."""
    return link(page(browser, "/login/oidc/connection/"), "Connect your account")


def test_the_first_login_makes_a_user_with_the_groups_of_the_provider_and_the_next_is_of_the_same(provider):
    browser = Client()
    answer = arrives(browser, following="/queues/?q=a")
    assert (answer.status_code, answer["location"], browser.get("/").status_code) == (302, "/queues/?q=a", 200)
    user = User.objects.get(username="alice")
    assert ({group.name for group in user.groups.all()}, user.has_usable_password()) == ({"team-a", "staff"}, False)
    assert "Lab login" in page(reader("admin", "superuser"), "/access/").text(tag="main")
    assert {*AuditEntry.objects.filter(actor="alice").values_list("verb", flat=True)} == {"create", "update", "login"}
    provider.people["alice"] |= {"preferred_username": "alice-married", "groups": ["team-b"]}
    arrives(Client())
    user = User.objects.get(identities__subject="id-of-alice")
    assert (user.username, [group.name for group in user.groups.all()]) == ("alice", ["team-b"])
    provider.people["alice"].pop("groups")
    arrives(Client())
    assert not user.groups.exists()


def test_a_role_of_a_group_is_held_by_who_is_in_it_and_the_group_of_the_setting_administers(provider, settings):
    RoleBinding.objects.create(group=Group.objects.create(name="team-a"), namespace="*", role="operator")
    settings.OIDC_ADMIN_GROUP = "staff"
    assert identities.appoint_administrators()
    assert not identities.appoint_administrators()
    browser = Client()
    for groups, audit, access in (["team-a"], 200, 403), (["staff"], 200, 200), ([], 403, 403):
        provider.people["alice"]["groups"] = groups
        arrives(browser)
        assert [browser.get(path).status_code for path in ("/audit/", "/access/")] == [audit, access]


def test_groups_of_the_system_are_not_the_providers_to_give_and_claims_in_no_token_are_asked_for(provider):
    provider.in_userinfo = ("preferred_username", "groups")
    provider.people["alice"]["groups"] = ["system:masters", "system:serviceaccounts", "a\nb", "fine"]
    assert arrives(Client()).status_code == 302
    assert [group.name for group in User.objects.get(username="alice").groups.all()] == ["fine"]


def test_a_name_that_is_somebody_elses_is_refused_and_nothing_is_made(provider):
    reader("alice", "superuser")
    browser = Client()
    says(arrives(browser), 409, "belongs to a user who does not log in by this account")
    assert "_auth_user_id" not in browser.session
    assert not Identity.objects.exists()


def test_a_user_connects_his_account_and_keeps_his_name(provider):
    browser = reader("al", "viewer")
    back = at_provider(connects(browser), "alice").removeprefix("http://testserver")
    says(browser.get(back, follow=True), 200, "You log in with the account id-of-alice")
    other = Client()
    arrives(other)
    assert "al" in page(other, "/").text(id="reader")
    assert not User.objects.filter(username="alice").exists()


def test_an_account_that_is_somebodys_is_not_connected_to_another(provider):
    arrives(Client())
    browser = reader("bob")
    says(returns(browser, connects(browser)), 409, 'belongs to the user "alice"')


def test_connecting_ends_with_the_session_that_began_it(provider):
    browser = reader("al")
    address = connects(browser)
    browser.force_login(User.objects.create_user("other"))
    assert returns(browser, address).status_code == 400
    assert not Identity.objects.exists()


def test_who_is_deactivated_or_refused_at_the_provider_stays_out_and_reads_why(provider):
    says(arrives(Client(), answer="no"), 403, "did not let you in (access_denied: not in the group lab)")
    arrives(Client())
    User.objects.update(is_active=False)
    says(arrives(Client()), 403, "deactivated; ask an administrator")


def test_nobody_is_sent_to_another_site_and_the_session_ends_after_the_hours_of_the_setting(provider, settings):
    settings.OIDC_SESSION_HOURS = 3
    for following in ("https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)"):
        browser = Client()
        assert arrives(browser, following=following)["location"] == "/"
        assert 3 * 3600 - 60 < browser.session.get_expiry_age() <= 3 * 3600


def test_who_logs_out_is_offered_to_log_out_of_the_provider_where_that_can_be(provider):
    browser = Client()
    arrives(browser)
    address = link(Page(browser.post("/logout/", follow=True)), "Log out of Lab login as well")
    assert httpx.get(address).headers["location"] == "http://testserver/login/"
    assert provider.left == ["id-of-alice"]
    assert "logged out here" not in page(browser, "/login/").text(tag="main")
    assert browser.get("/").status_code == 302
    ours._provider.cache_clear()
    provider.described = {"end_session_endpoint": None}
    arrives(browser)
    text = Page(browser.post("/logout/", follow=True)).text(tag="main")
    assert ("perhaps still logged in at Lab login" in text, "as well" in text) == (True, False)


def test_keys_may_change_between_logins_and_one_that_was_replaced_under_its_name_is_asked_for_in_time(
    provider, moved_clock
):
    for kid in ("first", "the-one"):
        provider.rotate(kid)
        assert arrives(Client()).status_code == 302
    provider.rotate("the-one")
    assert arrives(Client()).status_code == 502
    moved_clock.move(ours.KEYS_S)
    assert arrives(Client()).status_code == 302


def wrong_key(provider):
    provider.signs_with = type(provider.key).generate_key(2048)


def unsigned(provider):
    signed = provider._id_token
    header = base64.urlsafe_b64encode(b'{"alg": "none"}').rstrip(b"=").decode()
    provider._id_token = lambda name, nonce: f"{header}.{signed(name, nonce).split('.')[1]}."


def values(**attributes):
    """A provider that is set to something; the value of a dict is added to it."""

    def change(provider):
        for name, value in attributes.items():
            here = getattr(provider, name)
            setattr(provider, name, here | value if isinstance(here, dict) else value)

    return change


@cases("change, code, words", {
    "signed by another": (wrong_key, 502, "looks at its description and its signing keys"),
    "signed by nobody": (unsigned, 502, "cannot be used"),
    "another client's": (values(twist={"aud": "other"}), 502, "not meant for this login"),
    "azp alone": (values(twist={"aud": "other", "azp": CLIENT}), 502, "VOLCANO_UI_OIDC_CLIENT_ID"),
    "issuer": (values(twist={"iss": "http://x"}), 502, "not meant for this login (iss)"),
    "replayed": (values(twist={"nonce": "old"}), 502, "not meant for this login (nonce)"),
    "no subject": (values(twist={"sub": ""}), 502, "claim sub has 0 characters"),
    "no name": (values(twist={"preferred_username": None}), 502, "VOLCANO_UI_OIDC_NAME_CLAIM"),
    "no name of ours": (values(twist={"preferred_username": "a b"}), 422, "Enter a valid username"),
    "groups are no list": (values(twist={"groups": "staff"}), 502, "VOLCANO_UI_OIDC_GROUPS_CLAIM"),
    "token endpoint broken": (values(broken={"token": 500}), 503, "it answered 500"),
    "its clock is ahead": (values(skew_s=600), 502, "sets them by NTP"),
    "its clock is behind": (values(skew_s=-900), 502, "sets them by NTP"),
    "the issuer calls itself otherwise": (values(described={"issuer": "https://x"}), 502, "VOLCANO_UI_OIDC_ISSUER"),
    "no address of logins": (values(described={"authorization_endpoint": None}), 502, "cannot be used"),
    "away": (values(broken={"description": 503}), 503, "Lab login cannot be asked (it answered 503)"),
    "no ID token": (values(gives_id_token=False), 502, "have the scope openid"),
})  # fmt: skip
def test_what_cannot_be_believed_is_said_with_the_remedy_and_asked_again(provider, change, code, words):
    before = {**vars(provider)}
    change(provider)
    browser = Client()
    says(arrives(browser), code, words, "Back to the login")
    assert "_auth_user_id" not in browser.session
    assert not User.objects.exists()
    vars(provider).clear()
    vars(provider).update(before, skew_s=60)  # a minute is nothing
    assert arrives(browser).status_code == 302


def test_a_wrong_secret_is_named(provider, settings):
    settings.OIDC_CLIENT_SECRET = "another"
    says(arrives(Client()), 502, "VOLCANO_UI_OIDC_CLIENT_SECRET_FILE")


def test_an_answer_counts_once_in_its_own_browser_and_shows_no_words_of_others(provider):
    browser = Client()
    address = at_provider(browser.get("/login/oidc/")["location"], "alice").removeprefix("http://testserver")
    says(Client().get(address), 400, "Begin again")
    assert [browser.get(address).status_code for _ in range(2)] == [302, 400]
    invented = Client().get("/login/oidc/callback/?error=x&error_description=Call+555&state=s")
    assert (invented.status_code, b"555" in invented.content) == (400, False)


def test_the_login_page_offers_the_provider_by_its_name_and_passwords_can_be_switched_off(provider, settings):
    document = page(Client(), "/login/?next=/queues/%3Fa%3D1%26b%3D2")
    assert link(document, "Log in with Lab login") == "/login/oidc/?next=%2Fqueues%2F%3Fa%3D1%26b%3D2"
    assert document.one(id="id_password") is not None
    settings.PASSWORD_LOGIN = False
    User.objects.create_user("al", password="x")
    document = page(Client(), "/login/")
    assert (document.one(id="id_password"), "one-time link" in document.text(tag="main")) == (None, True)
    admin = reader("admin", "superuser")
    posted = Client().post("/login/", {"username": "al", "password": "x"})
    assert [posted.status_code, admin.get("/password/").status_code] == [403, 403]
    assert "Change password" not in page(admin, "/").text(id="reader")
    assert "Password" not in page(admin, "/access/").text(tag="main")


def test_without_a_provider_there_are_no_such_pages(admin):
    for path in ("", "callback/", "connection/"):
        assert admin.get(f"/login/oidc/{path}").status_code == 404
    assert "Log in with" not in page(admin, "/").text(id="reader")


def test_with_several_clusters_the_provider_knows_the_addresses_of_the_first(rf, settings):
    settings.CLUSTERS = (Entry("home"), Entry("dev", "/config"))
    for name, path in (("accounts:arrival", "login/oidc/callback/"), ("accounts:login", "login/")):
        assert registered_address(rf.get("/"), name) == f"http://testserver/c/home/{path}"
    settings.CLUSTERS = ()
    assert registered_address(rf.get("/"), "accounts:login") == "http://testserver/login/"
