SELECT item.position AS position, item.run AS run, item.size AS size
FROM memory_index JOIN memory_items AS item ON item.position = memory_index.rowid
WHERE memory_index MATCH 'owner : "' || :hash || '" AND words : "' || :word || '"'
AND item.owner = :owner
ORDER BY memory_index.rowid DESC LIMIT :most
