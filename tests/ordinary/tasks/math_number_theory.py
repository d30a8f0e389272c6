# result: {"primes": [1229, 9973], "gcd": [12, 60], "comb": 2598960, "modular": [4, 9], "sum": 1.0, "distance": 5.0, "root": [2.0, 3.0], "big": 904, "product": 87178291200}
import cmath
import math


def sieve(limit):
    flags = bytearray([1]) * (limit + 1)
    flags[:2] = b"\0\0"
    for n in range(2, math.isqrt(limit) + 1):
        if flags[n]:
            flags[n * n :: n] = bytes(len(range(n * n, limit + 1, n)))
    return [n for n, f in enumerate(flags) if f]


async def main():
    primes = sieve(10_000)
    return {
        "primes": [len(primes), primes[-1]],
        "gcd": [math.gcd(84, 36), math.lcm(4, 6, 10)],
        "comb": math.comb(52, 5),
        "modular": [pow(3, -1, 11), pow(7, 1000, 13)],
        "sum": math.fsum([0.1] * 10),
        "distance": math.dist((0, 0), (3, 4)),
        "root": [round(x, 6) for x in (cmath.sqrt(-4).imag, math.cbrt(27) if hasattr(math, "cbrt") else 3.0)],
        "big": len(str(2**3000)),
        "product": math.prod(range(1, 15)),
    }
