"""People who come with an ID token: believed when it is of the issuer, for this page, in time, and names a person."""

import hashlib
import hmac
import json
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.utils import base64url_encode
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from backstay.errors import SettingsInvalid
from backstay.testing import Reply
from gateways.web.serving import open_identity
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.serving import served as serving
from tests.sizes import spread
from tests.web.pages import KEY, SECRET, listed, place, press, served_page, told, verdicts

ANA, AUDIENCE = "ana@example.com", "the-page"
MAIL = {"to": "kim@x.example", "subject": "Hello", "body": "Dear Kim"}


@dataclass
class Issuer:
    """Publish keys, and make tokens out."""

    url: str = ""
    keys: dict = field(default_factory=dict)
    asked: int = 0

    def add(self, kid, key=None):
        self.keys[kid] = key or rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        return self.keys[kid]

    def token(self, kid="one", algorithm="RS256", key=None, **claims):
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "1", "iat": now, "exp": now + 300, "email": ANA}
        said |= {"email_verified": True, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, key or self.keys[kid], algorithm=algorithm, headers={"kid": kid})

    async def described(self, request):
        return JSONResponse({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})

    async def published(self, request):
        self.asked += 1
        kinds = {rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm, ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm}
        found = []
        for kid, key in self.keys.items():
            kind = next(kind for known, kind in kinds.items() if isinstance(key, known))
            found.append({**json.loads(kind.to_jwk(key.public_key())), "kid": kid})
        return JSONResponse({"keys": found})


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    issuer = Issuer()
    issuer.add("one")
    issuer.add("two", ec.generate_private_key(ec.SECP256R1()))
    routes = [Route("/.well-known/openid-configuration", issuer.described), Route("/keys", issuer.published)]
    async with AsyncExitStack() as stack:
        issuer.url = await stack.enter_async_context(serving(Starlette(routes=routes)))
        scripts = Scripts()
        given = {"web_identity": "oidc", "oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "web_secret": SECRET}
        folder = tmp_path_factory.mktemp("oidc")
        running = await stack.enter_async_context(engine(temporal, folder, scripts, approver_key=KEY, **given))
        served = await stack.enter_async_context(served_page(running))
        yield issuer, running, scripts, served


def bearing(token):
    return {"Authorization": f"Bearer {token}"}


@promise("page:tokens-of-a-proxy")
async def test_a_person_who_is_signed_in_decides_and_the_decision_is_verified(opened):
    issuer, running, scripts, served = opened
    handle = await running.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})])))
    await pending(handle)
    async with served.stranger(**bearing(issuer.token())) as person:
        await listed(person, handle.id)
        path = f"/api/requests/{handle.id}/r1"
        found = (await person.get(path)).json()
        said = {"verdict": "answer", "answer": "this one", "f": found["run_id"], "d": found["live"]["digest"]}
        done = await person.post(f"{path}/decide", json=said)
    assert done.status_code == 200
    assert verdicts(await ended(handle)) == [(ANA, "answer", True)]


@promise("page:tokens-of-a-proxy")
@pytest.mark.thorough
async def test_a_person_with_a_token_decides_by_the_form_in_a_browser_and_the_decision_is_verified(browser, opened):
    issuer, running, scripts, served = opened
    handle = await running.start(scripts.task(Reply(calls=[("mail__send_email", MAIL)])))
    await pending(handle)
    # A proxy adds the token to what the browser sends.
    async with (
        served.stranger(**bearing(issuer.token())) as person,
        browser.tab(extra_http_headers=bearing(issuer.token())) as page,
    ):
        await listed(person, handle.id)
        await page.goto(place(served, handle))
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True)]
    assert running.mailbox.sent() == [MAIL["to"]]


@promise("page:token-keys")
async def test_keys_of_other_kinds_and_new_ones_are_found_and_unknown_ones_do_not_flood_the_issuer(opened):
    issuer, _, _, served = opened
    async with served.stranger() as anybody:
        assert (await anybody.get("/", headers=bearing(issuer.token("two", "ES256")))).status_code == 200
        asked = issuer.asked
        forged = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        for number in range(20):
            token = issuer.token(f"unknown-{number}", key=forged)
            assert (await anybody.get("/", headers=bearing(token))).status_code == 401
    assert issuer.asked <= asked + 1


@promise("page:token-refused")
async def test_a_token_that_is_not_for_this_page_lets_nobody_in(opened):
    issuer, _, _, served = opened
    now = int(time.time())
    public = issuer.keys["one"].public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    other = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    head, body, _ = issuer.token().split(".")
    refused = {
        "expired": issuer.token(exp=now - 120),
        "not yet": issuer.token(nbf=now + 600),
        "without an end": issuer.token(exp=None),
        "for another page": issuer.token(aud="another-page"),
        "for two pages": issuer.token(aud=[AUDIENCE, "another-page"]),
        "of another issuer": issuer.token(iss="https://evil.example"),
        "unverified address": issuer.token(email_verified=False),
        "address that says nothing of that": issuer.token(email_verified=None),
        "verified in words": issuer.token(email_verified="true"),
        "nobody": issuer.token(email=None),
        "a list of people": issuer.token(email=[ANA, "bo@example.com"]),
        "hidden signs": issuer.token(email=f"{ANA}\u202e"),
        "signed by another key": issuer.token(key=other),
        "unsigned": jwt.encode({"email": ANA, "aud": AUDIENCE}, None, algorithm="none", headers={"kid": "one"}),
        "signed with the public key": hmac_token(pem, json.loads(jwt.utils.base64url_decode(body))),
        "without its signature": f"{head}.{body}.",
        "no token": "x" * 20_000,
    }
    async with served.stranger() as anybody:
        came = {name: (await anybody.get("/", headers=bearing(token))).status_code for name, token in refused.items()}
        cookie = await anybody.get("/", headers={"Cookie": f"backstay={issuer.token()}"})
        named = await anybody.get("/", headers={"X-Forwarded-Email": ANA})
    assert set(came.values()) == {401}, came
    assert (cookie.status_code, named.status_code) == (401, 401)


def hmac_token(key, claims):
    """Return a token that a careless reader would check with the public key as if it were a secret."""
    head = base64url_encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode())
    said = head + b"." + base64url_encode(json.dumps(claims).encode())
    return (said + b"." + base64url_encode(hmac.new(key, said, hashlib.sha256).digest())).decode()


@promise("page:token-refused")
async def test_for_two_pages_counts_when_it_was_made_out_to_this_one(opened):
    issuer, _, _, served = opened
    async with served.stranger() as anybody:
        token = issuer.token(aud=[AUDIENCE, "another-page"], azp=AUDIENCE)
        assert (await anybody.get("/", headers=bearing(token))).status_code == 200


@promise("page:token-claim")
async def test_the_claim_that_names_people_is_the_one_that_is_set(opened):
    issuer, running, _, _ = opened
    async with served_page(running, oidc_claim="preferred_username") as served, served.stranger() as anybody:
        # Only an address needs to be verified by the issuer.
        token = issuer.token(preferred_username="ana.of.office", email_verified=None)
        known = await anybody.get("/", headers=bearing(token))
        unnamed = await anybody.get("/", headers=bearing(issuer.token()))
    assert (known.status_code, unnamed.status_code) == (200, 401)
    assert ("ana.of.office" in known.text, ANA in known.text) == (True, False)
    assert "it lacks the claim preferred_username" in unnamed.text


@promise("page:token-audience")
@pytest.mark.parametrize("missing", spread(["oidc_audience", "oidc_issuer"], 1))
async def test_a_page_for_tokens_of_anybody_does_not_start(opened, missing):
    _, running, _, served = opened
    with pytest.raises(SettingsInvalid, match="BACKSTAY_OIDC_ISSUER, BACKSTAY_OIDC_AUDIENCE: required"):
        open_identity(running.settings.model_copy(update={missing: None}), served.page.seals, "127.0.0.1")
