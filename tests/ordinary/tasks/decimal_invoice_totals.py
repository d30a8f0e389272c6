# result: {"subtotal": "2438.495", "vat": "463.31", "total": "2901.80", "third": "0.33333333333333333333333333333333333333333333333333", "precision": 28, "exact": true}
# output: "Subtotal: 2438.495 VAT: 463.31\n"
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, getcontext, localcontext

lines = [("Consulting", "12.5", "95.00"), ("Licence", "1", "1249.99"), ("Travel", "3", "0.335")]
cent = Decimal("0.01")
subtotal = sum((Decimal(q) * Decimal(p) for _, q, p in lines), Decimal(0))
vat = (subtotal * Decimal("0.19")).quantize(cent, rounding=ROUND_HALF_UP)
with localcontext() as ctx:
    ctx.prec = 50
    third = Decimal(1) / Decimal(3)
print("Subtotal:", subtotal, "VAT:", vat)
return {
    "subtotal": str(subtotal),
    "vat": str(vat),
    "total": str((subtotal + vat).quantize(cent, rounding=ROUND_HALF_EVEN)),
    "third": str(third),
    "precision": getcontext().prec,
    "exact": Decimal("0.1") + Decimal("0.2") == Decimal("0.3"),
}
