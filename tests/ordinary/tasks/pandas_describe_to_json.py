# result: {"stats": {"count": 4.0, "mean": 39.0, "std": 14.9443, "min": 22.0, "25%": 31.75, "50%": 38.0, "75%": 45.25, "max": 58.0}, "counts": {"x": 3, "y": 1}, "bins": {"a": "young", "b": "middle", "c": "senior", "d": "middle"}, "json": {"a": {"age": 22, "team": "x"}, "b": {"age": 35, "team": "y"}, "c": {"age": 58, "team": "x"}, "d": {"age": 41, "team": "x"}}, "query": ["c", "d"], "applied": 312}
# image: data
import json

import pandas as pd

df = pd.DataFrame({"age": [22, 35, 58, 41], "team": pd.Categorical(["x", "y", "x", "x"])}, index=list("abcd"))
stats = df["age"].describe()
bins = pd.cut(df["age"], [0, 30, 50, 100], labels=["young", "middle", "senior"])
return {
    "stats": {k: round(float(v), 4) for k, v in stats.items()},
    "counts": df["team"].value_counts().to_dict(),
    "bins": bins.astype(str).to_dict(),
    "json": json.loads(df.to_json(orient="index")),
    "query": df.query("age > 30 and team == 'x'").index.tolist(),
    "applied": df["age"].apply(lambda a: a * 2).sum().item(),
}
