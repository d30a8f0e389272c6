# result: {"x": [2.0, 3.0], "det": 5.0, "eigen": [1.381966, 3.618034], "orthogonal": true, "norm": 12.041595}
# image: data
import numpy as np


async def main():
    a = np.array([[3.0, 1.0], [1.0, 2.0]])
    b = np.array([9.0, 8.0])
    x = np.linalg.solve(a, b)
    values, vectors = np.linalg.eigh(a)
    return {
        "x": x.tolist(),
        "det": round(float(np.linalg.det(a)), 6),
        "eigen": values.round(6).tolist(),
        "orthogonal": bool(np.allclose(vectors @ vectors.T, np.eye(2))),
        "norm": round(float(np.linalg.norm(b)), 6),
    }
