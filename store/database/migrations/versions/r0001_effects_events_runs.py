"""Make the first tables: identity, effects, events, secret handles, runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    _make_identity_and_effects()
    _make_events_and_secrets()
    _make_runs()


def _make_identity_and_effects() -> None:
    op.create_table(
        "store_identity",
        sa.Column("row", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "effects",
        sa.Column("effect_id", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("undo", sa.Boolean, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("args_digest", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("send", sa.Integer, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("lease", sa.Double, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("result_ref", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.Column("undo_tool", sa.Text),
        sa.Column("undo_sealed", sa.Text),
        sa.Column("undo_shown", sa.Text),
        sa.Column("arguments_sealed", sa.Text),
        sa.Column("first_sent_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )
    op.create_index("effects_of_run", "effects", ["run", "n"])


def _make_events_and_secrets() -> None:
    op.create_table(
        "events",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "secret_handles",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("handle", sa.Text, primary_key=True),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("workflow_run_id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("closed_at", sa.Double),
        sa.Column("opened", sa.JSON, nullable=False),
        sa.Column("store", sa.Text, nullable=False),
        sa.Column("result", sa.JSON),
    )
    op.create_index("runs_of_workflow", "runs", ["workflow_id", "opened_at"])
    op.create_index("runs_by_age", "runs", ["opened_at"])
    op.create_table(
        "run_chain",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("workflow_run_id", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Refuse: going back would forget which effects were sent."""
    raise NotImplementedError("restore a backup instead of going back")
