"""Run the migrations on the connection that `store.opening` hands over; there is no other way in."""

from alembic import context

from store.database.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
