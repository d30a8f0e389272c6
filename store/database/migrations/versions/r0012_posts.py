"""Keep where in a chat notices stand, so that they can be changed there."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "posts",
        sa.Column("receiver", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("ts", sa.Text, nullable=False),
        sa.Column("drawn", sa.Double, nullable=False),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("lease", sa.Double, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("touched_at", sa.Double, nullable=False),
    )
    op.create_index("posts_by_kind", "posts", ["receiver", "kind", "touched_at"])
    op.create_index("posts_of_request", "posts", ["receiver", "workflow_id", "run_id", "request_id"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("posts")
