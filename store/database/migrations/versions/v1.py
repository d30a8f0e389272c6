"""Make all tables, by statements that are kept for each kind of database."""

from pathlib import Path

from alembic import op

revision = "v1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    connection = op.get_bind()
    statements = Path(__file__).with_name(f"v1_{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
