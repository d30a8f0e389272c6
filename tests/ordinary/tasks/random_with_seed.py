# result: {"dice": [4, 1, 1, 1, 5, 1, 6, 6, 1, 1], "numbers": [1, 4, 5, 22, 35, 44], "deck": "FHBECGDA", "weighted": ["lose", "lose", "lose", "lose", "lose"], "gauss": -0.7514992576, "uniform": 1.6604411127}
import random


async def main():
    random.seed(1234)
    dice = [random.randint(1, 6) for _ in range(10)]
    own = random.Random("lottery")
    numbers = sorted(own.sample(range(1, 50), 6))
    deck = list("ABCDEFGH")
    own.shuffle(deck)
    weighted = own.choices(["win", "lose"], weights=[1, 9], k=5)
    return {
        "dice": dice,
        "numbers": numbers,
        "deck": "".join(deck),
        "weighted": weighted,
        "gauss": round(own.gauss(0, 1), 10),
        "uniform": round(own.uniform(1, 2), 10),
    }
