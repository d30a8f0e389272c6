CREATE VIRTUAL TABLE memory_index USING fts5(owner, words, tokenize = 'ascii');
