"""Remember what the workers of this store have in common, as fingerprints."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; the first worker fills it."""
    op.create_table(
        "worker_fingerprints",
        sa.Column("what", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Refuse: going back would forget which worker fits."""
    raise NotImplementedError("restore a backup instead of going back")
