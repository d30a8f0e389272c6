SELECT max(version_num) FROM alembic_version
