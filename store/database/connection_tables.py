"""Define the tables of what people have let backstay do at servers; the rest of the schema is beside it."""

from sqlalchemy import Column, Double, Index, Integer, LargeBinary, Table

from store.database.schema import Words, metadata

connections = Table(
    "connections",
    metadata,
    Column("user_id", Words, primary_key=True),
    Column("provider", Words, primary_key=True),
    Column("id", Words, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", Words, nullable=False),
    Column("wanted", Words, nullable=False),
    Column("connected_at", Double, nullable=False),
    Column("refreshed_at", Double, nullable=False),
    Column("ends_at", Double),
    Column("lease", Double, nullable=False),
    Column("token", Words, nullable=False),
    Column("sealed", LargeBinary),
)

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("id", Words, primary_key=True),
    Column("user_id", Words, nullable=False),
    Column("provider", Words, nullable=False),
    Column("until", Double, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("sign_ins_by_age", "until"),
)

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("provider", Words, primary_key=True),
    Column("issuer", Words, primary_key=True),
    Column("return_to", Words, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)

own_servers = Table(
    "own_servers",
    metadata,
    Column("provider", Words, primary_key=True),
    Column("user_id", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("host", Words, nullable=False),
    Column("added_at", Double, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("own_servers_by_user", "user_id", "name", unique=True),
)
