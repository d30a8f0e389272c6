"""Keep accepted decisions and used proofs, and who may decide about each effect."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make two tables and one column."""
    op.add_column("effects", sa.Column("authority", sa.JSON(none_as_null=True)))
    op.create_table(
        "decisions",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, primary_key=True),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_table(
        "used_proofs",
        sa.Column("nonce", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("used_by", sa.Text, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.create_index("used_proofs_by_expiry", "used_proofs", ["expires"])


def downgrade() -> None:
    """Forget decisions and used proofs."""
    op.drop_table("used_proofs")
    op.drop_table("decisions")
    op.drop_column("effects", "authority")
