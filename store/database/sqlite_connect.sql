-- Run on every new SQLite connection, one statement a line; the busy timeout is set by the driver's own argument.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
