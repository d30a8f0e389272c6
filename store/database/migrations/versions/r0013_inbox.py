"""Note with each request who may see it, what kind it is and which are alike; and keep who is looking at which."""

import sqlalchemy as sa
from alembic import op

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.canonical import digest_of

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_ADDED = ("readers", "kind", "alike")
_AT_ONCE = 200


def upgrade() -> None:
    """Add columns and table, and fill in the columns of what was asked before."""
    for name in _ADDED:
        op.add_column("requests", sa.Column(name, sa.Text, nullable=False, server_default=""))
    op.create_index("requests_alike", "requests", ["alike", "state"])
    op.create_table(
        "looks",
        sa.Column("workflow_id", sa.Text, primary_key=True),
        sa.Column("request_id", sa.Text, primary_key=True),
        sa.Column("reader", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_index("looks_by_age", "looks", ["until"])
    _fill_in()


def _fill_in() -> None:
    requests = sa.table(
        "requests", sa.column("position"), sa.column("request", sa.JSON), *(sa.column(name) for name in _ADDED)
    )
    connection, after = op.get_bind(), 0
    chosen = sa.select(requests.c.position, requests.c.request).order_by(requests.c.position).limit(_AT_ONCE)
    while rows := connection.execute(chosen.where(requests.c.position > after)).all():
        for row in rows:
            facts = _facts_of(ApprovalRequest.model_validate(row.request))
            connection.execute(sa.update(requests).where(requests.c.position == row.position).values(**facts))
            after = row.position


def _facts_of(request: ApprovalRequest) -> dict[str, str]:
    deciders = "\n".join(sorted(request.deciders))
    same = [[call.tool, call.args_digest] for call in request.calls]
    whole = request.kind in {RequestKind.CALL, RequestKind.BATCH} and all(digest for _, digest in same)
    return {
        "readers": f"\n{deciders}\n" if deciders else "",
        "kind": request.kind.value,
        "alike": digest_of(same) if whole and same else "",
    }


def downgrade() -> None:
    """Forget them."""
    op.drop_table("looks")
    op.drop_index("requests_alike", "requests")
    for name in _ADDED:
        op.drop_column("requests", name)
