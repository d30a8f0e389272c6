SELECT tool, bm25(tools, 0.0, 6.0, 1.5, 1.0) AS score
FROM tools
WHERE tools MATCH ?
ORDER BY round(score, 6), tool
LIMIT ?;
