# result: {"scaled": {"flour": "3 3/4", "sugar": "1 1/8", "salt": "3/16"}, "pi": "355/113", "harmonic": "7381/2520"}
from fractions import Fraction

recipe = {"flour": Fraction(5, 2), "sugar": Fraction("3/4"), "salt": Fraction("0.125")}
scaled = {name: amount * Fraction(3, 2) for name, amount in recipe.items()}


def mixed(f):
    whole, rest = divmod(f, 1)
    return f"{whole} {rest}" if whole and rest else str(f)


return {
    "scaled": {name: mixed(amount) for name, amount in scaled.items()},
    "pi": str(Fraction(3.141592653589793).limit_denominator(1000)),
    "harmonic": str(sum(Fraction(1, n) for n in range(1, 11))),
}
