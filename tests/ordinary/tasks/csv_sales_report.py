# result: {"revenue": {"North": 61.0, "South": 22.0}, "csv": "region,revenue\nNorth,61.00\nSouth,22.00\n", "dialect": ","}
# output: "region,revenue\nNorth,61.00\nSouth,22.00\n\n"
import csv
import io
from collections import defaultdict

DATA = """region,product,units,price
North,Widget,10,2.50
South,Widget,4,2.50
North,"Gadget, large",3,12.00
South,"Gadget, large",1,12.00
"""


async def main():
    revenue = defaultdict(float)
    for row in csv.DictReader(io.StringIO(DATA)):
        revenue[row["region"]] += int(row["units"]) * float(row["price"])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["region", "revenue"])
    for region, total in sorted(revenue.items()):
        writer.writerow([region, f"{total:.2f}"])
    print(out.getvalue())
    return {"revenue": dict(revenue), "csv": out.getvalue(), "dialect": csv.Sniffer().sniff(DATA).delimiter}
