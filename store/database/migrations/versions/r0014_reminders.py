"""Note with each request how often people were reminded of it, and when they last were."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of what was asked before, the next reminder says how many there were."""
    op.add_column("requests", sa.Column("reminded", sa.Integer, nullable=False, server_default="0"))
    op.add_column("requests", sa.Column("reminded_at", sa.Double))


def downgrade() -> None:
    """Forget them."""
    for name in ("reminded", "reminded_at"):
        op.drop_column("requests", name)
