SELECT run FROM runs WHERE pruned_at IS NOT NULL AND run IN (SELECT value FROM json_each(?))
