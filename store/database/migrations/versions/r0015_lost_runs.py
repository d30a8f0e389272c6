"""Note which open runs were looked at in Temporal, and which of them it has ended without their saying so."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_WANTED = sa.text("state = 'open' AND lost_at IS NULL")


def upgrade() -> None:
    """Add the columns, and an index that holds few rows."""
    op.add_column("runs", sa.Column("checked_at", sa.Double, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("lost_at", sa.Double))
    op.create_index("runs_unchecked", "runs", ["checked_at"], sqlite_where=_WANTED, postgresql_where=_WANTED)


def downgrade() -> None:
    """Forget them."""
    op.drop_index("runs_unchecked", "runs")
    for name in ("checked_at", "lost_at"):
        op.drop_column("runs", name)
