"""The client of the OpenID Connect provider.

Authlib implements the protocol: discovery, the code flow with PKCE, state and nonce, signatures, keys that
change. Added here are the checks that it leaves to its users (that the ID token comes from the configured
issuer and is for this client, and that a key of the provider signed it), and a sentence for
each kind of failure. Import it where it is used: with its dependencies it takes 10 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import requests
from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App, OAuthError
from django.conf import settings
from django.http import HttpRequest
from joserfc.errors import ClaimError as TokenClaimError
from joserfc.errors import JoseError

from cluster import claims, clock
from cluster.claims import ClaimError, Person
from dashboard.accounts.refusals import LoginError

PATIENCE_S = 10
KEYS_S = 300  # for how long keys are cached, one that the provider has revoked among them
SKEW_S = 120  # how far the two clocks may be apart
LONGEST_REASON = 200
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
OF_TIME = ("exp", "iat", "nbf")


class Provider(DjangoOAuth2App):  # type: ignore[misc]  # Authlib has no types
    """The provider of the settings. Its endpoints are discovered at the first use and cached."""

    _keys_until = 0.0

    def load_server_metadata(self) -> dict[str, Any]:
        """Return the provider's metadata; raise LoginError if they are of another issuer than that of the settings."""
        metadata: dict[str, Any] = super().load_server_metadata()
        if metadata.get("issuer") != settings.OIDC_ISSUER:
            metadata.clear()
            raise LoginError(
                f"{settings.OIDC_NAME} does not call itself {settings.OIDC_ISSUER}. Whoever runs this server sets "
                "VOLCANO_UI_OIDC_ISSUER to the issuer in the provider's own description.",
                502,
            )
        for endpoint in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not metadata.get(endpoint):
                metadata.clear()  # or Authlib would cache it, and not discover again after a correction
                raise RuntimeError(f"its description names no {endpoint}")
        # Not "none", and not HS256 with its shared secret: a key of the provider alone must have signed.
        algorithms = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [each for each in algorithms if each in ALGORITHMS]
        return metadata

    def fetch_jwk_set(self, force: bool = False) -> dict[str, Any]:
        """Return the provider's signing keys, fetched again after `KEYS_S`, or when `force` is set for a key that is missing."""
        now = clock.monotonic()
        force = force or now >= self._keys_until
        keys: dict[str, Any] = super().fetch_jwk_set(force)
        if force:
            self._keys_until = now + KEYS_S
        return keys


@cache
def _provider(issuer: str, client_id: str, secret: str, scope: str) -> Provider:
    return Provider(
        framework=DjangoIntegration("oidc"),
        name="oidc",
        client_id=client_id,
        client_secret=secret or None,
        client_kwargs={"scope": scope, "code_challenge_method": "S256", "default_timeout": PATIENCE_S},
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
    )


def current() -> Provider:
    """Return the provider that the settings name."""
    return _provider(
        settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, " ".join(settings.OIDC_SCOPES)
    )


def begin(request: HttpRequest, back: str, **stored: Any) -> str:
    """Return the provider's address to which to send a browser.

    `back` is the address here to which the provider sends it back; `stored` goes into the session, for `arrive`.
    """
    provider = current()
    _forget_old_states(request)
    with _explained():
        authorization = provider.create_authorization_url(back)
        # "kept" is a key in sessions: a login that was begun before an upgrade goes on after it.
        provider.save_authorize_data(request, redirect_uri=back, kept=stored, **authorization)
    return str(authorization["url"])


def arrive(request: HttpRequest) -> tuple[Person, str, Mapping[str, Any]]:
    """Return the person who came back from the provider, the ID token, and what `begin` has stored."""
    provider = current()
    _forget_old_states(request)
    data = provider.framework.get_state_data(request.session, request.GET.get("state"))
    if data is None:
        # Before the provider's error is read as well: anybody can lead a browser here with an error of his own.
        raise LoginError(
            "This login was begun in another browser or window, or more than an hour ago. Begin again.", 400
        )
    with _explained():
        token = provider.authorize_access_token(
            request,
            leeway=SKEW_S,
            claims_options={
                "iss": {"essential": True, "value": settings.OIDC_ISSUER},
                "aud": {"essential": True, "value": settings.OIDC_CLIENT_ID},
            },
        )
        if "userinfo" not in token:
            raise LoginError(
                f"{settings.OIDC_NAME} sent no ID token. Whoever runs it lets this client have the scope openid.", 502
            )
        return _person(provider, token), token["id_token"], data["kept"]


def _forget_old_states(request: HttpRequest) -> None:
    """Remove logins from the session that were begun more than an hour ago; Authlib does so only at the end of one."""
    current().framework.clear_state_data(request.session, "")


def leave(id_token: str, back: str) -> str:
    """Return the provider's address for logging out there, "" if it has none or does not answer."""
    provider = current()
    try:
        with _explained():
            logout = provider.create_logout_url(back, id_token, client_id=settings.OIDC_CLIENT_ID)
    except LoginError:
        # It does not answer, or has no such endpoint: the session here has ended all the same.
        return ""
    return str(logout["url"])


def _person(provider: Provider, token: dict[str, Any]) -> Person:
    """Return the person of a token; claims that it lacks are fetched from the userinfo endpoint, if there is one."""
    user_claims = dict(token["userinfo"])
    names = (settings.OIDC_NAME_CLAIM, settings.OIDC_GROUPS_CLAIM)
    if not all(name in user_claims for name in names) and "userinfo_endpoint" in provider.server_metadata:
        more = provider.userinfo(token=token)
        if more.get("sub") != user_claims["sub"]:
            raise LoginError(f"{settings.OIDC_NAME} sent the claims of somebody else.", 502)
        user_claims = {**more, **user_claims}
    return claims.person(user_claims, name_claim=names[0], groups_claim=names[1])


@contextmanager
def _explained() -> Iterator[None]:
    """Turn each kind of failure at the provider into a LoginError with a remedy."""
    name = settings.OIDC_NAME
    try:
        yield
    except OAuthError as error:
        raise _refused(name, error) from None
    except requests.RequestException as error:
        raise LoginError(
            f"{name} cannot be asked ({_reason(error)}). Try again in a moment; if it lasts, whoever runs this "
            "server checks whether VOLCANO_UI_OIDC_ISSUER can be reached from here.",
            503,
        ) from error
    except TokenClaimError as error:
        raise _disbelieved(name, error) from error
    except (JoseError, ValueError, RuntimeError) as error:
        if isinstance(error, ClaimError):
            raise LoginError(f"{name} does not say enough about you. {error}", 502) from None
        raise LoginError(
            f"What {name} sent cannot be used: {str(error)[:LONGEST_REASON]}. Try again; if it lasts, whoever runs "
            f"{name} looks at its description and its signing keys.",
            502,
        ) from error


def _refused(name: str, error: Any) -> LoginError:
    reason = ": ".join(str(part) for part in (error.error, error.description) if part)[:LONGEST_REASON]
    if error.error == "access_denied":
        return LoginError(f"{name} did not let you in ({reason}). Ask whoever runs {name} for access.", 403)
    if error.error == "invalid_grant":
        return LoginError(f"{name} no longer knows of this login ({reason}). Begin again.", 400)
    return LoginError(
        f"{name} refused this server ({reason}). Whoever runs this server compares VOLCANO_UI_OIDC_CLIENT_ID, "
        f"VOLCANO_UI_OIDC_CLIENT_SECRET_FILE, VOLCANO_UI_OIDC_SCOPES and the redirect address with what {name} has.",
        502,
    )


def _disbelieved(name: str, error: TokenClaimError) -> LoginError:
    claim = getattr(error, "claim", "")
    if claim in OF_TIME:
        return LoginError(
            f"By the clock of this server, what {name} sent is not valid now ({claim}). The clocks are more than "
            f"{SKEW_S // 60} minutes apart: whoever runs the two machines sets them by NTP.",
            502,
        )
    return LoginError(
        f"What {name} sent is not meant for this login ({claim}). Begin again; if it lasts, whoever runs this "
        f"server compares VOLCANO_UI_OIDC_CLIENT_ID with what {name} has.",
        502,
    )


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"it answered {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {PATIENCE_S} s"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted"
    if isinstance(error, requests.exceptions.JSONDecodeError):
        return "its answer is not JSON"
    return "no connection"
