"""Keep the requests of all runs, and what is still to be told to whom."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; what open runs have asked before is not known here."""
    op.add_column("runs", sa.Column("metadata", sa.JSON(none_as_null=True)))
    _requests()
    op.create_table(
        "outbox",
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_index("outbox_by_stream", "outbox", ["stream", "position"])
    op.create_index("outbox_by_age", "outbox", ["created_at"])
    op.create_table(
        "receivers",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("receiver", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("lease", sa.Double, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("written_at", sa.Double, nullable=False),
    )
    op.create_index("deliveries_due", "deliveries", ["state", "receiver", "due_at"])
    op.create_index("deliveries_in_order", "deliveries", ["receiver", "stream", "state", "sequence"])


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("decision", sa.JSON(none_as_null=True)),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("checked_at", sa.Double, nullable=False),
    )
    op.create_index("requests_by_name", "requests", ["workflow_id", "request_id", "run_id"])
    op.create_index("requests_by_state", "requests", ["state", "position"])
    op.create_index("requests_by_change", "requests", ["changed_at"])


def downgrade() -> None:
    """Forget them."""
    for name in ("deliveries", "receivers", "outbox", "requests"):
        op.drop_table(name)
    op.drop_column("runs", "metadata")
