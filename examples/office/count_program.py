"""Count the unread mails by sender and post the list: a program as a model would write it, run in a jail."""

from collections import Counter

from sandbox_py.servers import gmail, slack


async def main():
    """Read page after page, keep the numbers only, post them."""
    unread, token = Counter(), None
    while True:
        answer = await gmail.GMAIL_FETCH_EMAILS(query="is:unread", max_results=20, page_token=token)
        unread.update(mail["sender"] for mail in answer["data"]["messages"])
        token = answer["data"]["nextPageToken"]
        if not token:
            break
    listed = await slack.SLACK_LIST_ALL_CHANNELS()
    channel = next(place["id"] for place in listed["data"]["channels"] if place["name"] == "support")
    lines = [f"{sender}: {count}" for sender, count in unread.most_common()]
    print(f"{len(lines)} senders")
    posted = await slack.SLACK_SEND_MESSAGE(channel=channel, text="Unread mails\n" + "\n".join(lines))
    return {"total": unread.total(), "by_sender": dict(unread), "ts": posted["data"]["ts"]}
