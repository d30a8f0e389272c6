"""`backstay connect`, `connections list` and `disconnect`: what an operator sees and ends, and never a token."""

import json

from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from tests.cli.commands import bare, forked
from tests.connections.issuer import go_to, offered
from tests.requirements import promise
from toolbox.configuration.load import load
from toolbox.oauth.connections import OAuthConnections

ANA, PAGE = "ana@example.com", "https://page.example.com"


@promise("connections:commands")
async def test_an_operator_gets_a_link_sees_who_is_signed_in_and_ends_it(authority, nursery, tmp_path):
    home, file = tmp_path / "home", tmp_path / "toolbox.json"
    async with offered(authority) as (issuer, notes):
        file.write_text(json.dumps({"mcpServers": {"notes": {"url": notes.url, "auth": {}}}}), encoding="utf-8")
        async with open_store(database_url=None, home=home, encryption_keys=[]) as store:
            place = ConnectionPlace(store.connections)
            connections = OAuthConnections(load(file, {})[0].servers, place.store)
            back = await go_to((await connections.begin(ANA, "notes", f"{PAGE}/back")).url, authority)
            await connections.finish(ANA, "notes", back)
            await connections.close()

        async def command(*words, code=0):
            settings = {"BACKSTAY_HOME": str(home), "BACKSTAY_TOOLBOX": str(file), "BACKSTAY_URL": PAGE}
            environment = bare(**settings, SSL_CERT_FILE=authority.trusted)
            done = await forked(nursery, *words, environment=environment, folder=tmp_path)
            assert done.code == code, (done.out, done.err)
            return done.out + done.err

        assert f"{PAGE}/connections#notes" in await command("connect", "notes", "--user", ANA)
        assert '"auth": {}' in await command("connect", "mail", "--user", ANA, code=2)
        assert "nobody" in await command("connect", "notes", "--user", "singleton", code=2)
        listed = await command("connections", "list", "--output", "json")
        assert [(each["user"], each["state"]) for each in json.loads(listed)] == [(ANA, "connected")]
        assert not [secret for secret in issuer.secrets if secret in listed]
        assert "revoked there" in await command("disconnect", "notes", "--user", ANA)
        assert not issuer.access
        assert "has no connection" in await command("disconnect", "notes", "--user", ANA, code=1)


@promise("connections:unseen-tools")
async def test_the_commands_for_changed_tools_name_the_servers_whose_tools_only_their_users_see(nursery, tmp_path):
    file = tmp_path / "toolbox.json"
    notes = {"url": "https://notes.example/mcp", "auth": {}}
    file.write_text(json.dumps({"mcpServers": {"notes": notes}}), encoding="utf-8")
    environment = bare(BACKSTAY_HOME=str(tmp_path / "home"), BACKSTAY_TOOLBOX=str(file), BACKSTAY_URL=PAGE)
    async with open_store(database_url=None, home=tmp_path / "home", encryption_keys=[]):
        pass
    why = "only a run of a user of this server sees its tools"
    every = await forked(nursery, "tools", "diff", environment=environment, folder=tmp_path)
    named = [
        await forked(nursery, "tools", command, tool, environment=environment, folder=tmp_path)
        for command, tool in (("diff", "notes.find"), ("accept", "notes.find"), ("accept", "own-crm.find"))
    ]

    assert f"notes is left out: {why}" in every.out + every.err
    assert [done.code for done in named] == [2, 2, 2]
    assert all(f"find: {why}" in done.err for done in named)
