DELETE FROM memory_index WHERE position = :position
