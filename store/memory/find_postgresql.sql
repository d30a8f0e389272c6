SELECT item.position AS position, item.run AS run, item.size AS size
FROM memory_index JOIN memory_items AS item ON item.position = memory_index.position
WHERE memory_index.words @@ CAST('''@' || :hash || ''' & ''' || :word || '''' AS TSQUERY)
AND item.owner = :owner
ORDER BY memory_index.position DESC LIMIT :most
