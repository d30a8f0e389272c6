"""Keep what models are just saying, and who watches."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "deltas",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("stream", sa.BigInteger, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_index("deltas_by_age", "deltas", ["at"])
    op.create_table(
        "watches",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("reader", sa.Text, primary_key=True),
        sa.Column("until", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("watches")
    op.drop_table("deltas")
