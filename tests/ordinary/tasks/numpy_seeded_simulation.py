# result: {"pi": 3.1464, "walk": [-30, 6, -24], "peak": 5, "legacy": [5, 0, 3, 3, 7]}
# image: data
import numpy as np


async def main():
    rng = np.random.default_rng(42)
    points = rng.random((20_000, 2))
    inside = (np.square(points).sum(axis=1) <= 1).mean()
    steps = rng.choice([-1, 1], size=1000).cumsum()
    spectrum = np.abs(np.fft.rfft(np.sin(np.linspace(0, 2 * np.pi * 5, 256, endpoint=False))))
    return {
        "pi": round(4 * float(inside), 4),
        "walk": [int(steps.min()), int(steps.max()), int(steps[-1])],
        "peak": int(spectrum.argmax()),
        "legacy": np.random.RandomState(0).randint(0, 10, 5).tolist(),
    }
