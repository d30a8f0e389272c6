SELECT rowid, -bm25(tools, 6.0, 6.0, 1.5, 1.0) AS score
FROM tools
WHERE tools MATCH ?
ORDER BY round(score, 6) DESC, rowid
LIMIT ?;
