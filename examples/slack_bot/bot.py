"""A Slack bot: it posts what runs ask, with buttons, and sends what people press as the signal `approval`."""

import hmac
import json
import os
import time

from aiohttp import web
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, PlainTextObject, SectionBlock

from backstay import connect
from backstay.approvals.proof import Binding
from backstay.client.run import signed

ENV = dict(os.environ)  # noqa: TID251 - a separate program, configured by its environment
app = AsyncApp(token=ENV["SLACK_BOT_TOKEN"], signing_secret=ENV["SLACK_SIGNING_SECRET"])
slack, posts, VERDICTS, KEY = app.client, {}, ("approve", "reject"), ENV["BACKSTAY_APPROVER_KEY"].encode()
slack.base_url = ENV.get("SLACK_API_URL", slack.base_url)


async def take(http: web.Request) -> web.Response:
    """Take a notice of a run: post what it asks, or change that to what became of it."""
    body, stamp = await http.read(), http.headers.get("Backstay-Timestamp", "0")
    mac = hmac.new(ENV["BACKSTAY_WEBHOOK_KEY"].encode(), f"{stamp}.".encode() + body, "sha256").hexdigest()
    if not hmac.compare_digest(mac, http.headers.get("Backstay-Signature", "")) or time.time() - int(stamp) > 300:
        return web.Response(status=401)
    if asked := (notice := json.loads(body))["request"]:
        place = {"workflow_id": notice["workflow_id"], "run_id": notice["run_id"], "request_id": asked["id"]}
        post, value = posts.setdefault(str(place), {}), json.dumps({**place, "digest": asked["digest"]})
        became = "{verdict} by {by}".format(**notice["decision"]) if notice["decision"] else notice["event"]
        calls = [f"{call['tool']} {json.dumps(call['arguments'])}\n{call['undo_how']}" for call in asked["calls"]]
        text = "\n\n".join([f"{became}: {asked['question']}", *calls])
        blocks = [SectionBlock(text=PlainTextObject(text=text[:3000]))]
        hidden = len(text) > 3000 or any(c["clipped"] for c in asked["calls"]) or (asked["proposal"] or {}).get("more")
        if notice["event"] == "asked" and "approve" in asked["options"] and not hidden:
            blocks.append(ActionsBlock(elements=[ButtonElement(text=v, action_id=v, value=value) for v in VERDICTS]))
        send = slack.chat_update if post else slack.chat_postMessage
        post["ts"] = (await send(channel=ENV["SLACK_CHANNEL"], text=became, blocks=blocks, **post))["ts"]
    return web.Response()


@app.action("reject")
@app.action("approve")
async def press(ack: AsyncAck, action: dict, body: dict, respond: AsyncRespond) -> object:
    """Send a verdict to the run, signed in the name of the person who pressed."""
    await ack()
    user, team = (await slack.users_info(user=body["user"]["id"]))["user"], (await slack.auth_test())["team_id"]
    teams = [user.get("team_id"), *user.get("enterprise_user", {}).get("teams", [])]
    if team not in teams or user.get("is_restricted") or not user.get("is_email_confirmed"):
        return await respond("Only members with a confirmed e-mail address decide.", replace_original=False)
    async with connect() as backstay:
        bound = Binding(namespace=backstay.client.namespace, update="approval", **json.loads(action["value"]))
        said = {"request_id": bound.request_id, "verdict": action["action_id"], "by": user["profile"]["email"].lower()}
        return await backstay.client.get_workflow_handle(bound.workflow_id).signal("approval", signed(KEY, bound, said))


server = app.server(port=int(ENV.get("PORT", "3000")), path="/slack/events")
server.web_app.router.add_post("/hooks/backstay", take)
server.start(host="127.0.0.1")
