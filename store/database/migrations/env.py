"""Run the migrations on the connection from `store.opening`; the alembic command line cannot run them."""

from alembic import context

from store.database.connection_tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
