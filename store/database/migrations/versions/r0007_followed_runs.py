"""Keep which run follows which, of whose session it is, and the context that it leaves."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; runs that are there already left no context, so nothing can follow them."""
    for name in ("session_id", "follows", "context"):
        op.add_column("runs", sa.Column(name, sa.Text))
    op.create_index("runs_by_followed", "runs", ["follows"])


def downgrade() -> None:
    """Forget them: no run can be followed any more."""
    op.drop_index("runs_by_followed", "runs")
    for name in ("context", "follows", "session_id"):
        op.drop_column("runs", name)
