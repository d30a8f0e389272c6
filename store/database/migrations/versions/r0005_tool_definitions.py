"""Remember the definitions of tools that were last allowed."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; the first run that meets a tool fills it."""
    op.create_table(
        "tool_definitions",
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("said", sa.JSON, nullable=False),
        sa.Column("allowed_by", sa.Text, nullable=False),
        sa.Column("allowed_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Forget them: every tool is then met for the first time again."""
    op.drop_table("tool_definitions")
