"""Let a run be marked as pruned."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the time at which what a run recorded was removed."""
    op.add_column("runs", sa.Column("pruned_at", sa.Double))


def downgrade() -> None:
    """Refuse: going back would forget which runs must not send again."""
    raise NotImplementedError("restore a backup instead of going back")
