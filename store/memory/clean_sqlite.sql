INSERT INTO memory_index (memory_index) VALUES ('optimize')
