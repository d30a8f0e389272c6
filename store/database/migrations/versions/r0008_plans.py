"""Keep the plans that runs propose."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "plans",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("plan_id", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("proposal", sa.JSON, nullable=False),
        sa.Column("ended", sa.JSON(none_as_null=True)),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("plans")
