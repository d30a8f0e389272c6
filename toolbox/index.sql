CREATE VIRTUAL TABLE tools USING fts5(tool UNINDEXED, name, description, parameters, tokenize = 'porter unicode61');
