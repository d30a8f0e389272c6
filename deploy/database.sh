#!/bin/sh
# Give backstay a database and a user of its own in the Postgres that Temporal uses; runs at every start, and changes
# only what is missing or different. The password that the file holds is the user's from then on.
set -eu
secrets="${SECRETS:-/run/secrets}"
PGPASSWORD="$(cat "$secrets/POSTGRES_PASSWORD")"
export PGPASSWORD
# Not an argument: those of a process can be seen by others.
{
    printf '\\set password %s\n' "$(cat "$secrets/BACKSTAY_DATABASE_PASSWORD")"
    cat "$(dirname "$0")/database.sql"
} | psql --quiet --no-psqlrc --set ON_ERROR_STOP=1
