INSERT INTO tools (tool, name, description, parameters) VALUES (?, ?, ?, ?);
