# result: {"subject": "Invoice €100", "to": ["bob@example.org", "team@example.org"], "date": "2024-03-01T09:30:00+01:00", "body": "Please pay by Friday.", "reply": ["Ann Lee <ann@example.org>", "multipart/mixed", ["x.csv"]]}
import email
from email.message import EmailMessage
from email.policy import default
from email.utils import getaddresses, parsedate_to_datetime

RAW = b"""From: "Ann Lee" <ann@example.org>
To: bob@example.org, "Team, The" <team@example.org>
Subject: =?utf-8?q?Invoice_=E2=82=AC100?=
Date: Fri, 01 Mar 2024 09:30:00 +0100
Content-Type: text/plain; charset="utf-8"

Please pay by Friday.
"""


async def main():
    message = email.message_from_bytes(RAW, policy=default)
    reply = EmailMessage()
    reply["Subject"] = "Re: " + message["Subject"]
    reply["To"] = message["From"]
    reply.set_content("Done.\n")
    reply.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="x.csv")
    return {
        "subject": message["Subject"],
        "to": [address for _, address in getaddresses([message["To"]])],
        "date": parsedate_to_datetime(message["Date"]).isoformat(),
        "body": message.get_content().strip(),
        "reply": [reply["To"], reply.get_content_type(), [p.get_filename() for p in reply.iter_attachments()]],
    }
