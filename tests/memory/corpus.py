"""A year of an office: runs that are much alike, and among them some that alone answer a question."""

import json
import random

from tests.memory.recorded import Call, Recorded

FIRMS = (
    "Nordwind", "Hartmann", "Blue Harbor", "Castello", "Ostermann", "Lakeside", "Veldt", "Marigold", "Quarry Lane",
    "Sunfield", "Tidewater", "Ironbridge", "Petersen", "Okafor", "Delacroix", "Yamato", "Brightwell", "Kestrel",
)  # fmt: skip
PEOPLE = (
    "Ana Keller",
    "Bo Lindqvist",
    "Chidi Eze",
    "Dora Novak",
    "Emil Roth",
    "Farah Aziz",
    "Gwen Price",
    "Hugo Silva",
)
THINGS = ("printer", "projector", "desk lamps", "server rack", "coffee machine", "headsets", "whiteboards", "monitors")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
PLACES = ("Lisbon", "Hamburg", "Porto", "Oslo", "Ghent", "Turin", "Leeds", "Graz", "Malmo", "Split")
SERVICES = ("billing-api", "search-indexer", "mailer", "gateway", "reports", "image-resizer", "auth-proxy")

# A question, and the run that alone answers it.
QUESTIONS = (
    ("Which bank account does the landlord of the Lisbon office use?",
     "Look up the lease of our Lisbon office", Call("files.read", '{"path":"lease-lisbon.txt"}',
     "Landlord: Azulejo Imobiliaria. Rent 4,100 EUR, payable to bank account PT50 0002 0123 4567 8901."),
     "The lease names Azulejo Imobiliaria as the landlord."),
    ("why did the search-indexer fall over in the night of the storm?",
     "Find out what broke the search-indexer last night", Call("logs.query", '{"service":"search-indexer"}',
     {"lines": ["disk full on node 7", "storm: backup generator started", "indexer killed"]}),
     "It ran out of disk on node 7 after the generator started."),
    ("What allergies does Dora have?",
     "Order lunch for the team meeting", Call("crm.person", '{"name":"Dora Novak"}',
     {"name": "Dora Novak", "notes": "allergic to walnuts and sesame"}), "Lunch is ordered without nuts."),
    ("When does the passport of Hugo expire?",
     "Book the visa appointment for Hugo Silva", Call("hr.document", '{"person":"Hugo Silva"}',
     {"document": "passport", "expires": "2027-09-14"}), "The appointment is booked."),
    ("How much did the espresso machine repair cost?",
     "Pay the bill for the coffee machine", Call("mail.read", '{"id":"m81"}',
     "Invoice 7719: repair of your espresso machine, new pump, total 312.40 EUR"), "The bill was paid."),
    ("Which hotel did we choose for the offsite in Ghent?",
     "Plan the offsite of the sales team", Call("travel.hotels", '{"city":"Ghent"}',
     [{"hotel": "Gravensteen Inn", "chosen": True}, {"hotel": "Leie Lodge", "chosen": False}]),
     "The offsite is at the Gravensteen Inn."),
    ("What is the wifi password policy for visitors?",
     "Answer the question of the visitor about the network", Call("wiki.page", '{"title":"Visitors"}',
     "Guests get a wifi voucher at the front desk; it is valid for one day."), "Vouchers are at the desk."),
    ("Who cancelled the contract with Kestrel, and for what reason?",
     "Summarise the thread with Kestrel", Call("mail.thread", '{"with":"Kestrel"}',
     "Gwen Price cancelled the contract because deliveries were late three times."), "Gwen ended it over delays."),
    ("What license does the pdf library have?",
     "Check whether we may ship the pdf library", Call("web.fetch", '{"url":"https://pdf.example"}',
     "The library is under AGPL 3.0; commercial licenses are sold."), "It is AGPL, so we may not ship it."),
    ("How long is the warranty of the projectors?",
     "File the papers of the new projectors", Call("files.read", '{"path":"projector.pdf"}',
     "Warranty: 36 months from delivery, lamp excluded."), "Filed."),
    ("Which port does the staging database listen on?",
     "Help Emil connect to staging", Call("vault.config", '{"env":"staging"}',
     {"database": {"host": "db.staging.example", "port": 6543}}), "Emil is connected."),
    ("What did the auditors complain about?",
     "Read the letter of the auditors", Call("mail.read", '{"id":"m200"}',
     "Two findings: receipts missing for taxi rides, and nobody countersigned the petty cash book."),
     "There are two findings."),
    ("Which sleeper train did Farah take to Turin?",
     "Book travel by night for Farah Aziz", Call("travel.trains", '{"to":"Turin"}', {"sleeper": "EN 151", "bed": 9}),
     "Travel is booked."),
    ("What colour are the new brand guidelines built on?",
     "Send the brand guidelines to the agency", Call("files.read", '{"path":"brand.txt"}',
     "Primary colour: teal 0F766E. Never use gradients."), "Sent."),
    ("How many seats does the Figma subscription have?",
     "Review what we pay for software", Call("billing.list", "{}",
     [{"product": "Figma", "seats": 23}, {"product": "Zoom", "seats": 60}]), "The list is in the sheet."),
    ("Who waters the plants while Ana is on parental leave?",
     "Hand over the duties of Ana", Call("wiki.page", '{"title":"Duties"}',
     "Plants: Chidi Eze until Ana is back from parental leave."), "The duties are handed over."),
    ("What was the result of the penetration test of the auth-proxy?",
     "File the security report", Call("files.read", '{"path":"pentest.txt"}',
     "auth-proxy: one high finding, session tokens were not rotated after login."), "Filed under security."),
    ("Which museum gave us the discount for the summer party?",
     "Find a place for the summer party", Call("mail.read", '{"id":"m310"}',
     "The Maritime Museum offers 20 percent off its courtyard on Thursdays."), "The courtyard is reserved."),
    ("What is the tax number of Delacroix?",
     "Correct the invoice address of Delacroix", Call("crm.firm", '{"name":"Delacroix"}',
     {"firm": "Delacroix", "vat": "FR 83 404 833 048"}), "The address is corrected."),
    ("Why was the release of the mailer rolled back?",
     "Roll the mailer back to the version before", Call("deploy.rollback", '{"service":"mailer"}',
     {"service": "mailer", "from": "4.2.0", "reason": "unsubscribe links pointed to the old domain"}),
     "The mailer is at 4.1.9 again."),
)  # fmt: skip


def ordinary(count, seed=11):
    """Runs in which the same firms, people and things come up again and again."""
    chance = random.Random(seed)
    return [_ordinary(chance, number) for number in range(count)]


def _ordinary(chance, number):
    firm, person, thing = chance.choice(FIRMS), chance.choice(PEOPLE), chance.choice(THINGS)
    month, place, service = chance.choice(MONTHS), chance.choice(PLACES), chance.choice(SERVICES)
    amount, invoice = chance.randint(90, 9000), chance.randint(10_000, 99_999)
    task, tool, request, output, answer = chance.choice((
        (f"Pay the {month} invoice of {firm}", "bank.pay", {"invoice": invoice},
         {"invoice": invoice, "firm": firm, "paid": amount}, f"Invoice {invoice} of {firm} is paid: {amount} EUR."),
        (f"Order {thing} for the {place} office", "shop.order", {"item": thing, "to": place},
         {"order": invoice, "item": thing, "price": amount}, f"The {thing} for {place} are ordered for {amount} EUR."),
        (f"Book a train to {place} for {person} in {month}", "travel.trains", {"to": place},
         {"train": f"IC {invoice % 900}", "seat": f"wagon {amount % 12}"}, f"{person} travels to {place}."),
        (f"Deploy {service} and watch its logs", "deploy.start", {"service": service},
         {"service": service, "version": f"{amount % 9}.{invoice % 20}.0", "healthy": True}, f"{service} is deployed."),
        (f"Summarise the mails with {firm} of {month}", "mail.thread", {"with": firm},
         f"{firm} asks when the {thing} will arrive; {person} answered in {month}.", f"{firm} waits for {thing}."),
        (f"Plan the meeting with {person} in {place}", "calendar.free", {"person": person},
         {"free": [f"{month} {amount % 28 + 1}"], "room": f"{invoice % 40}"}, f"The meeting with {person} is planned."),
    ))  # fmt: skip
    return Recorded(f"o{number}", task, (Call(tool, json.dumps(request), output),), answer)


def asked():
    """The runs that answer the questions, by number."""
    return [Recorded(f"q{n}", task, (call,), answer) for n, (_, task, call, answer) in enumerate(QUESTIONS)]
