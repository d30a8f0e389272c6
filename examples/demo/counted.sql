-- The requests that the mailbox recorded, each before it acted on it.
SELECT tool, count(*) AS requests FROM requests GROUP BY tool ORDER BY tool
