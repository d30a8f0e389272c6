-- What the mailbox itself holds: how often each person was written to, and what of it was recalled.
SELECT
    recipient,
    count(*) AS sent,
    sum(CASE WHEN recalled_at IS NULL THEN 0 ELSE 1 END) AS recalled
FROM sent
GROUP BY recipient
ORDER BY recipient
