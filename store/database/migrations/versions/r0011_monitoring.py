"""Keep what operators watch where it is found without a search: unknown effects, and undos that are parked."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index that holds few rows, and the table; what was parked before is not known here."""
    unknown = sa.text("state = 'unknown'")
    op.create_index("effects_unknown", "effects", ["effect_id"], sqlite_where=unknown, postgresql_where=unknown)
    op.create_table(
        "parked_undos",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("effect", sa.Integer, primary_key=True, autoincrement=False),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("parked_undos")
    op.drop_index("effects_unknown", "effects")
