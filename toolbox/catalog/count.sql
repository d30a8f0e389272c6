SELECT count(*) FROM tools WHERE tools MATCH ?;
