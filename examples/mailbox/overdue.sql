-- name: overdue
-- Who must be reminded, and of how much: the answer to the demo's task, from the database.
SELECT
    customers.email AS email,
    count(*) AS invoices,
    sum(invoices.amount_cents) / 100.0 AS total
FROM invoices
INNER JOIN customers ON customers.id = invoices.customer_id
WHERE invoices.paid = 0 AND invoices.due_date < date(:today, '-' || :days || ' days')
GROUP BY customers.id
ORDER BY customers.email
