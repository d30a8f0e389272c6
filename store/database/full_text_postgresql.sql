CREATE TABLE memory_index (
    position INTEGER NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (position)
);
CREATE INDEX memory_index_words ON memory_index USING gin (words);
