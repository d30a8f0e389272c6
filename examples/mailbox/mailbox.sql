-- name: write_ahead
PRAGMA journal_mode = WAL

-- name: wait_for_locks
PRAGMA busy_timeout = 20000

-- name: begin
BEGIN IMMEDIATE

-- name: count_seeded
SELECT (SELECT count(*) FROM customers) + (SELECT count(*) FROM inbox) AS seeded

-- name: add_customer
INSERT INTO customers (id, name, email) VALUES (:id, :name, :email)

-- name: add_invoice
INSERT INTO invoices (number, customer_id, amount_cents, due_date, paid)
VALUES (:number, :customer_id, :amount_cents, :due_date, :paid)

-- name: add_message
INSERT INTO inbox (sender, subject, body, received_at) VALUES (:sender, :subject, :body, :received_at)

-- name: record_request
INSERT INTO requests (tool, arguments, effect_id, at) VALUES (:tool, :arguments, :effect_id, :at)

-- name: count_requests
SELECT count(*) AS requests FROM requests WHERE tool = :tool

-- name: list_customers
SELECT id, name, email
FROM customers
ORDER BY id
LIMIT :limit OFFSET :offset

-- name: count_customers
SELECT count(*) AS total FROM customers

-- name: list_invoices
WITH dated AS (
    SELECT
        number,
        customer_id,
        amount_cents,
        due_date,
        paid,
        CASE
            WHEN paid THEN 0
            ELSE max(0, CAST(julianday(:today) - julianday(due_date) AS INTEGER))
        END AS days_overdue
    FROM invoices
)
SELECT * FROM dated
WHERE (:paid IS NULL OR paid = :paid) AND (:days IS NULL OR days_overdue > :days)
ORDER BY due_date, number

-- name: search_messages
SELECT id, sender, subject, body, received_at
FROM inbox
WHERE instr(lower(sender || char(10) || subject || char(10) || body), lower(:query)) > 0
ORDER BY received_at DESC, id
LIMIT 20

-- name: send
INSERT INTO sent (recipient, subject, body, client_token, effect_id, sent_at)
VALUES (:to, :subject, :body, :client_token, :effect_id, :at)

-- name: recall
UPDATE sent SET recalled_at = :at WHERE id = :id AND recalled_at IS NULL

-- name: find_sent
SELECT recalled_at FROM sent WHERE id = :id

-- name: list_sent
SELECT id, recipient, subject, body, client_token, sent_at, recalled_at, count(*) OVER () AS total
FROM sent
WHERE (:token IS NULL OR client_token = :token) AND (:to IS NULL OR recipient = :to)
ORDER BY id DESC
LIMIT 50

-- name: delete_message
DELETE FROM inbox WHERE id = :id
