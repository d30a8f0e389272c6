INSERT INTO tools (rowid, provider, name, description, parameters) VALUES (?, ?, ?, ?, ?);
