INSERT INTO memory_index (position, words)
VALUES (:position, array_to_tsvector(array_append(string_to_array(:words, ' '), '@' || :owner)))
