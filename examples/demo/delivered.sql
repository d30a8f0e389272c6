-- For each recipient, how many mails the mailbox sent and how many were recalled.
SELECT
    recipient,
    count(*) AS sent,
    sum(CASE WHEN recalled_at IS NULL THEN 0 ELSE 1 END) AS recalled
FROM sent
GROUP BY recipient
ORDER BY recipient
