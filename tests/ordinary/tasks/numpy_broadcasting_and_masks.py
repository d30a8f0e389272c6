# result: {"scaled": [12, 150, 1800, 21000], "masked": [4, -1, 6, -1], "mean": 11.166666666666666, "above": [2, 3], "stacked": [6, 4], "unique": [[1, 2, 3], [2, 1, 2]], "percentile": [1.75, 2.5], "einsum": [14, 38, 62]}
# image: data
import numpy as np

grid = np.arange(12).reshape(3, 4)
scaled = grid * np.array([1, 10, 100, 1000])
masked = np.where(grid % 2 == 0, grid, -1)
prices = np.array([10.0, np.nan, 12.5, 11.0])
return {
    "scaled": scaled.sum(axis=0).tolist(),
    "masked": masked[1].tolist(),
    "mean": float(np.nanmean(prices)),
    "above": np.flatnonzero(prices > 10.5).tolist(),
    "stacked": list(np.vstack([grid, grid]).shape),
    "unique": [a.tolist() for a in np.unique([3, 1, 3, 2, 1], return_counts=True)],
    "percentile": np.percentile([1, 2, 3, 4], [25, 50]).tolist(),
    "einsum": np.einsum("ij,kj->ik", grid, grid)[0].tolist(),
}
