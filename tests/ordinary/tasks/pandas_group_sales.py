# result: {"summary": {"N": {"revenue": 61.0, "orders": 2}, "S": {"revenue": 22.0, "orders": 2}, "W": {"revenue": 17.5, "orders": 1}}, "pivot": {"N": {"a": 10, "b": 3}, "S": {"a": 4, "b": 1}, "W": {"a": 7, "b": 0}}, "top": "b", "share": {"a": 0.5224, "b": 0.4776}}
# output: "        revenue  orders\nregion                 \nN          61.0       2\nS          22.0       2\nW          17.5       1\n"
# image: data
import pandas as pd

df = pd.DataFrame(
    {
        "region": ["N", "S", "N", "S", "W"],
        "product": ["a", "a", "b", "b", "a"],
        "units": [10, 4, 3, 1, 7],
        "price": [2.5, 2.5, 12.0, 12.0, 2.5],
    }
)
df["revenue"] = df["units"] * df["price"]
summary = df.groupby("region").agg(revenue=("revenue", "sum"), orders=("units", "size"))
pivot = df.pivot_table(index="region", columns="product", values="units", aggfunc="sum", fill_value=0)
print(summary)
return {
    "summary": summary.to_dict(orient="index"),
    "pivot": pivot.to_dict(orient="index"),
    "top": df.nlargest(1, "revenue").iloc[0]["product"],
    "share": (df.groupby("product")["revenue"].sum() / df["revenue"].sum()).round(4).to_dict(),
}
