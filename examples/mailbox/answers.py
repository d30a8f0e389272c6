"""What the tools answer."""

from pydantic import BaseModel, Field


class Customer(BaseModel):
    """One customer."""

    id: int
    name: str
    email: str


class Customers(BaseModel):
    """One page of customers."""

    customers: list[Customer]
    total: int = Field(description="How many customers there are on all pages.")
    offset: int
    has_more: bool


class Invoice(BaseModel):
    """One invoice."""

    number: str
    customer_id: int
    amount: float = Field(description="In EUR, with cents.")
    due_date: str
    paid: bool
    days_overdue: int = Field(description="Days since the due date; 0 when paid or not yet due.")


class Invoices(BaseModel):
    """One page of invoices, the oldest due date first."""

    invoices: list[Invoice]
    total: int = Field(description="How many invoices match on all pages.")
    offset: int
    has_more: bool


class InboxMessage(BaseModel):
    """One received message."""

    message_id: str
    sender: str
    subject: str
    body: str
    received_at: str


class InboxMessages(BaseModel):
    """The newest messages that match, at most 20."""

    messages: list[InboxMessage]


class Sent(BaseModel):
    """The receipt of one sent e-mail."""

    message_id: str
    to: str
    sent_at: str


class SentMessage(BaseModel):
    """One sent e-mail."""

    message_id: str
    to: str
    subject: str
    client_token: str | None
    sent_at: str
    recalled: bool


class SentMessages(BaseModel):
    """The newest sent e-mails that match, at most 50."""

    messages: list[SentMessage]
    total: int


class Recalled(BaseModel):
    """The receipt of one recall."""

    message_id: str
    recalled: bool


class Deleted(BaseModel):
    """The receipt of one deletion."""

    message_id: str
    deleted: bool
