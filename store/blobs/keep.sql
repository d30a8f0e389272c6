INSERT INTO payloads (run, name, data) VALUES (:run, :name, :data)
ON CONFLICT (run, name) DO UPDATE SET data = excluded.data
RETURNING EXISTS (SELECT 1 FROM payloads AS marks WHERE marks.run = payloads.run AND marks.name = 'shared')
