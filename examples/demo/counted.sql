-- What the mailbox counted as it came in, before it did anything about it.
SELECT tool, count(*) AS requests FROM requests GROUP BY tool ORDER BY tool
