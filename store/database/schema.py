"""Define the tables. The migrations create them, and a test checks that both agree."""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator


class Words(TypeDecorator[str]):
    """Store any text; characters that no database accepts (lone surrogates, NUL) are escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Escape what UTF-8 or PostgreSQL does not accept."""
        return None if value is None else stored_words(str(value))


def stored_words(text: str) -> str:
    """Return a string as it is stored."""
    plain = text.isascii() and "\0" not in text
    return text if plain else text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


HIGHEST = 2**31 - 1
"""No number in a column of integers is higher."""
metadata = MetaData()
UNANSWERED = text("state IN ('unknown', 'dispatched')")
"""The condition of an index; databases use it for a query that says the same in the same words."""
_UNCHECKED = text("state = 'open' AND lost_at IS NULL")

identity = Table(
    "store_identity",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("id", Words, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("temporal_epoch", Integer, nullable=False),
    Column("secret", LargeBinary, nullable=False),
)

effects = Table(
    "effects",
    metadata,
    Column("effect_id", Words, primary_key=True),
    Column("run", Words, nullable=False),
    Column("n", Integer, nullable=False),
    Column("undo", Boolean, nullable=False),
    Column("tool", Words, nullable=False),
    Column("args_digest", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("send", Integer, nullable=False),
    Column("token", Words, nullable=False),
    Column("lease", Double, nullable=False),
    Column("step", Integer, nullable=False),
    Column("user_id", Words, nullable=False),
    Column("result_ref", Words),
    Column("outcome", Words),
    Column("undo_tool", Words),
    Column("undo_sealed", Words),
    Column("undo_shown", Words),
    Column("arguments_sealed", Words),
    Column("task_sealed", Words),
    Column("authority", JSON(none_as_null=True)),
    Column("first_sent_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Index("effects_of_run", "run", "n"),
    Index("effects_unanswered", "effect_id", sqlite_where=UNANSWERED, postgresql_where=UNANSWERED),
)

# What is asked for by its value is a column beside the JSON that holds it: Postgres cannot look into JSON with a NUL.
events = Table(
    "events",
    metadata,
    Column("run", Words, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("effect", Integer),
    Column("body", JSON, nullable=False),
    Column("outcome", JSON(none_as_null=True)),
)

parked_undos = Table(
    "parked_undos",
    metadata,
    Column("run", Words, primary_key=True),
    Column("effect", Integer, primary_key=True, autoincrement=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("run", Words, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Words, primary_key=True),
    Column("body", JSON, nullable=False),
)

used_proofs = Table(
    "used_proofs",
    metadata,
    Column("nonce", Words, primary_key=True),
    Column("run", Words, nullable=False),
    Column("used_by", Words, nullable=False),
    Column("expires", Double, nullable=False),
    Index("used_proofs_by_expiry", "expires"),
)

secrets = Table(
    "secret_handles",
    metadata,
    Column("run", Words, primary_key=True),
    Column("handle", Words, primary_key=True),
    Column("provider", Words, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

payloads = Table(
    "payloads",
    metadata,
    Column("run", Words, primary_key=True),
    Column("name", Words, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("run", Words, primary_key=True),
    Column("workflow_id", Words, nullable=False),
    Column("workflow_run_id", Words, nullable=False),
    Column("user_id", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("opened", JSON, nullable=False),
    Column("store", Words, nullable=False),
    Column("outcome", Words),
    Column("result", JSON(none_as_null=True)),
    Column("pruned_at", Double),
    Column("session_id", Words),
    Column("follows", Words),
    Column("context", Words),
    Column("metadata", JSON(none_as_null=True)),
    Column("checked_at", Double, nullable=False),
    Column("lost_at", Double),
    Index("runs_of_workflow", "workflow_id", "opened_at"),
    Index("runs_by_age", "opened_at"),
    Index("runs_of_user", "user_id", "opened_at"),
    Index("runs_by_followed", "follows"),
    Index("runs_unchecked", "checked_at", sqlite_where=_UNCHECKED, postgresql_where=_UNCHECKED),
)

chain = Table(
    "run_chain",
    metadata,
    Column("workflow_id", Words, primary_key=True),
    Column("workflow_run_id", Words, primary_key=True),
    Column("run", Words, nullable=False),
)

tool_definitions = Table(
    "tool_definitions",
    metadata,
    Column("tool", Words, primary_key=True),
    Column("digest", Words, primary_key=True),
    Column("said", JSON, nullable=False),
    Column("allowed_by", Words, nullable=False),
    Column("allowed_at", Double, nullable=False),
)

accepted_lines = Table(
    "accepted_lines",
    metadata,
    Column("id", Words, primary_key=True),
    Column("user_id", Words, nullable=False),
    Column("session_id", Words, nullable=False),
    Column("verdict", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("votes", JSON, nullable=False),
    Column("line", JSON, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("expires_at", Double),
    Index("accepted_lines_of_user", "user_id", "state"),
)

plans = Table(
    "plans",
    metadata,
    Column("run", Words, primary_key=True),
    Column("plan_id", Words, primary_key=True),
    Column("state", Words, nullable=False),
    Column("body", JSON, nullable=False),
    Column("proposal", JSON, nullable=False),
    Column("ended", JSON(none_as_null=True)),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)

deltas = Table(
    "deltas",
    metadata,
    Column("run", Words, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("stream", BigInteger, nullable=False),
    Column("step", Integer, nullable=False),
    Column("text", Words, nullable=False),
    Column("at", Double, nullable=False),
    Index("deltas_by_age", "at"),
)

watches = Table(
    "watches",
    metadata,
    Column("run", Words, primary_key=True),
    Column("reader", Words, primary_key=True),
    Column("until", Double, nullable=False),
)

standing_tasks = Table(
    "standing_tasks",
    metadata,
    Column("kind", Words, primary_key=True),
    Column("name", Words, primary_key=True),
    Column("body", JSON, nullable=False),
    Column("paused", Words, nullable=False),
    Column("sealed_key", LargeBinary),
    Column("added_at", Double, nullable=False),
)

starts = Table(
    "starts",
    metadata,
    Column("id", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("event", Words, nullable=False),
    Column("signature", Words, nullable=False),
    Column("sealed_input", LargeBinary),
    Column("state", Words, nullable=False),
    Column("told", Words, nullable=False),
    Column("day", Words, nullable=False),
    Column("micro", BigInteger, nullable=False),
    Column("run", Words, nullable=False),
    Column("at", Double, nullable=False),
    Column("ended_at", Double),
    Index("starts_by_time", "kind", "name", "at"),
    Index("starts_of_day", "kind", "name", "day"),
    Index("starts_by_signature", "kind", "name", "signature"),
)

subruns = Table(
    "subruns",
    metadata,
    Column("workflow_id", Words, primary_key=True),
    Column("parent", Words, nullable=False),
    Column("n", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("task_digest", Words, nullable=False),
    Column("context", Words, nullable=False),
    Column("share", JSON, nullable=False),
    Column("private", JSON, nullable=False),
    Column("run", Words),
    Column("spent", JSON(none_as_null=True)),
    Index("subruns_of_parent", "parent", "n"),
    Index("subruns_by_run", "run"),
)

adopted_effects = Table(
    "adopted_effects",
    metadata,
    Column("run", Words, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("effect_id", Words, nullable=False),
    Column("step", Integer, nullable=False),
    Index("adopted_effects_by_effect", "effect_id", "run", unique=True),
)

looks = Table(
    "looks",
    metadata,
    Column("workflow_id", Words, primary_key=True),
    Column("request_id", Words, primary_key=True),
    Column("reader", Words, primary_key=True),
    Column("person", Words, nullable=False),
    Column("until", Double, nullable=False),
    Index("looks_by_age", "until"),
)

pauses = Table(
    "endpoint_pauses",
    metadata,
    Column("endpoint", Words, primary_key=True),
    Column("until", Double, nullable=False),
)

fingerprints = Table(
    "worker_fingerprints",
    metadata,
    Column("what", Words, primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", Words, nullable=False),
    Column("recorded_at", Double, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("workflow_id", Words, nullable=False),
    Column("run_id", Words, nullable=False),
    Column("request_id", Words, nullable=False),
    Column("run", Words, nullable=False),
    Column("user_id", Words, nullable=False),
    Column("session_id", Words),
    Column("state", Words, nullable=False),
    Column("request", JSON, nullable=False),
    Column("decision", JSON(none_as_null=True)),
    Column("words", Words, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("checked_at", Double, nullable=False),
    Column("readers", Words, nullable=False),
    Column("kind", Words, nullable=False),
    Column("alike", Words, nullable=False),
    Column("reminded", Integer, nullable=False, server_default="0"),
    Column("reminded_at", Double),
    Index("requests_alike", "alike", "state"),
    Index("requests_by_name", "workflow_id", "request_id", "run_id"),
    Index("requests_by_state", "state", "position"),
    Index("requests_by_change", "changed_at"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("id", Words, nullable=False, unique=True),
    Column("run", Words, nullable=False),
    Column("stream", Words, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("body", JSON, nullable=False),
    Index("outbox_by_stream", "stream", "position"),
    Index("outbox_by_age", "created_at"),
)

receivers = Table(
    "receivers",
    metadata,
    Column("name", Words, primary_key=True),
    Column("since", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("receiver", Words, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("stream", Words, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("state", Words, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("lease", Double, nullable=False),
    Column("token", Words, nullable=False),
    Column("written_at", Double, nullable=False),
    Index("deliveries_due", "state", "receiver", "due_at"),
    Index("deliveries_in_order", "receiver", "stream", "state", "sequence"),
)

posts = Table(
    "posts",
    metadata,
    Column("receiver", Words, primary_key=True),
    Column("name", Words, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("run", Words, nullable=False),
    Column("workflow_id", Words, nullable=False),
    Column("run_id", Words, nullable=False),
    Column("request_id", Words, nullable=False),
    Column("channel", Words, nullable=False),
    Column("ts", Words, nullable=False),
    Column("drawn", Double, nullable=False),
    Column("event", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("lease", Double, nullable=False),
    Column("token", Words, nullable=False),
    Column("touched_at", Double, nullable=False),
    Index("posts_by_kind", "receiver", "kind", "touched_at"),
    Index("posts_of_request", "receiver", "workflow_id", "run_id", "request_id"),
)

memory_items = Table(
    "memory_items",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("run", Words, nullable=False),
    Column("n", Integer, nullable=False),
    Column("owner", Words, nullable=False),
    Column("kind", Words, nullable=False),
    Column("tool", Words, nullable=False),
    Column("ref", Words, nullable=False),
    Column("source", Words, nullable=False),
    Column("written_by", Words, nullable=False),
    Column("approved_by", Words, nullable=False),
    Column("session_id", Words),
    Column("at", Double, nullable=False),
    Column("size", Integer, nullable=False),
    Index("memory_items_of_run", "run", "n", "kind", unique=True),
    Index("memory_items_of_owner", "owner", "at"),
)

# What is hashed is stored as it was hashed: it is written so that every database accepts it.
ledger_rows = Table(
    "ledger_rows",
    metadata,
    Column("run", Text, primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

ledger_heads = Table(
    "ledger_heads",
    metadata,
    Column("run", Text, primary_key=True),
    Column("n", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("salt", Text, nullable=False),
    Column("signed_n", Integer, nullable=False),
    Column("signed_hash", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("rooted", Integer, nullable=False),
)

ledger_roots = Table(
    "ledger_roots",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("day", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("heads", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("signature", Text, nullable=False),
)
