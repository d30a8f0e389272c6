SELECT rowid, -bm25(tools, 2.0, 4.0, 2.0, 1.0) AS score
FROM tools
WHERE tools MATCH ?
ORDER BY round(score, 6) DESC, rowid
LIMIT ?;
