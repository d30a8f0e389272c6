# result: {"back": [{"k": "a", "n": 2, "m": 1.0}, {"k": "b", "n": 1, "m": 2.0}], "wide": {"a": 2, "b": 1, "A": 2, "B": 1}, "corr": 0.994377}
# image: data
import sqlite3

import numpy as np
import pandas as pd


async def main():
    db = sqlite3.connect(":memory:")
    pd.DataFrame({"k": ["a", "b", "a"], "v": [1.0, 2.0, np.nan]}).to_sql("t", db, index=False)
    back = pd.read_sql_query("select k, count(*) n, avg(v) m from t group by k order by k", db)
    wide = pd.concat([back, back.assign(k=back["k"].str.upper())], ignore_index=True).set_index("k")
    corr = pd.DataFrame({"x": [1, 2, 3, 4], "y": [2, 4, 6, 9]}).corr().loc["x", "y"]
    return {"back": back.to_dict("records"), "wide": wide["n"].to_dict(), "corr": round(float(corr), 6)}
