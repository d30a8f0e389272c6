CREATE VIRTUAL TABLE tools USING fts5(provider, name, description, parameters, tokenize = 'porter unicode61');
