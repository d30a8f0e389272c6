# result: {"averages": [10.0, 15.0, 20.0, 25.0, 30.0], "squares": [1, 9, 25, 49, 81]}
def running_average():
    total, count, average = 0.0, 0, None
    while True:
        value = yield average
        total += value
        count += 1
        average = total / count


def flatten(nested):
    for item in nested:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


async def main():
    averager = running_average()
    next(averager)
    averages = [averager.send(v) for v in flatten([10, [20, [30, 40]], 50])]
    averager.close()
    squares = (n * n for n in range(10) if n % 2)
    return {"averages": averages, "squares": list(squares)}
