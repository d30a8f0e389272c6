DELETE FROM memory_index WHERE rowid = :position
