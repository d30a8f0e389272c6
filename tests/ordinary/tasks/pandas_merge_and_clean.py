# result: {"records": [{"name": "Ada", "city": "London", "amount": 1200.5}, {"name": "Bob", "city": "unknown", "amount": null}, {"name": "Cy", "city": "Paris", "amount": 80.0}], "unmatched": 1, "bad_dates": 1, "csv": "id,amount\n1,1200.5\n2,\n3,80.0\n", "long": ["London", "unknown", "Paris"], "dtypes": {"order": "int64", "amount": "float64"}}
# image: data
import io

import pandas as pd

CUSTOMERS = """id,name,city
1, Ada ,London
2,Bob,
3,Cy,Paris
3,Cy,Paris
"""
ORDERS = """order,customer,amount,when
10,1,"1,200.50",2024-01-05
11,3,80,2024-02-10
12,9,5,not a date
"""


async def main():
    customers = pd.read_csv(io.StringIO(CUSTOMERS)).drop_duplicates()
    customers["name"] = customers["name"].str.strip()
    customers["city"] = customers["city"].fillna("unknown")
    orders = pd.read_csv(io.StringIO(ORDERS), thousands=",")
    orders["when"] = pd.to_datetime(orders["when"], errors="coerce")
    merged = customers.merge(orders, left_on="id", right_on="customer", how="left", indicator=True)
    long = merged.melt(id_vars="name", value_vars=["city"])
    return {
        "records": merged[["name", "city", "amount"]].astype(object).where(merged[["name", "city", "amount"]].notna(), None).to_dict("records"),
        "unmatched": merged["_merge"].eq("left_only").sum().item(),
        "bad_dates": int(orders["when"].isna().sum()),
        "csv": merged[["id", "amount"]].to_csv(index=False),
        "long": long["value"].tolist(),
        "dtypes": {c: str(t) for c, t in orders[["order", "amount"]].dtypes.items()},
    }
