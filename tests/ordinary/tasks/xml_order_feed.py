# result: {"totals": {"1": [10.5, "EUR"], "2": [99.0, "USD"]}, "note": "rush", "xml": "<order id=\"3\"><total currency=\"GBP\">5 &lt; 6</total></order>", "problem": [1, 8]}
import xml.etree.ElementTree as ET

FEED = """<?xml version="1.0"?>
<orders xmlns:x="urn:extra">
  <order id="1"><total currency="EUR">10.50</total></order>
  <order id="2"><total currency="USD">99</total><x:note>rush</x:note></order>
</orders>"""


async def main():
    root = ET.fromstring(FEED)
    totals = {o.get("id"): (float(o.findtext("total")), o.find("total").attrib["currency"]) for o in root.iter("order")}
    note = root.find(".//x:note", {"x": "urn:extra"}).text
    third = ET.SubElement(root, "order", id="3")
    ET.SubElement(third, "total", currency="GBP").text = "5 < 6"
    try:
        ET.fromstring("<a><b></a>")
    except ET.ParseError as e:
        problem = list(e.position)
    return {"totals": totals, "note": note, "xml": ET.tostring(third, encoding="unicode"), "problem": problem}
