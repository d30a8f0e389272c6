-- name: customers
CREATE TABLE IF NOT EXISTS customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL
);

-- name: invoices
CREATE TABLE IF NOT EXISTS invoices (
    number TEXT PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    amount_cents INTEGER NOT NULL,
    due_date TEXT NOT NULL,
    paid INTEGER NOT NULL DEFAULT 0
);

-- name: inbox
CREATE TABLE IF NOT EXISTS inbox (
    id INTEGER PRIMARY KEY,
    sender TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    received_at TEXT NOT NULL
);

-- name: sent
CREATE TABLE IF NOT EXISTS sent (
    id INTEGER PRIMARY KEY,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    client_token TEXT,
    effect_id TEXT,
    sent_at TEXT NOT NULL,
    recalled_at TEXT
);

-- name: requests
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    effect_id TEXT,
    at TEXT NOT NULL
);
