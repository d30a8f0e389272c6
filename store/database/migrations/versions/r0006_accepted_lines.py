"""Keep the lines by which decisions are remembered."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; people fill it."""
    op.create_table(
        "accepted_lines",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("votes", sa.JSON, nullable=False),
        sa.Column("line", sa.JSON, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
    )
    op.create_index("accepted_lines_of_user", "accepted_lines", ["user_id", "state"])


def downgrade() -> None:
    """Forget them: people are asked again."""
    op.drop_table("accepted_lines")
