INSERT INTO memory_index (rowid, owner, words) VALUES (:position, :owner, :words)
