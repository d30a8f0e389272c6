# result: {"order": ["page", "call", "mail", "backup", "empty"], "merged": [0, 1, 2, 3, 4, 9, 10, 11], "largest": [8, 5]}
import heapq
import itertools


class TaskQueue:
    def __init__(self):
        self._heap = []
        self._counter = itertools.count()
        self._live = {}

    def add(self, task, priority=0):
        entry = [priority, next(self._counter), task]
        self._live[task] = entry
        heapq.heappush(self._heap, entry)

    def cancel(self, task):
        self._live.pop(task)[-1] = None

    def pop(self):
        while self._heap:
            _, _, task = heapq.heappop(self._heap)
            if task is not None:
                del self._live[task]
                return task
        raise KeyError("empty")


async def main():
    q = TaskQueue()
    for name, priority in [("mail", 5), ("backup", 9), ("page", 1), ("call", 1), ("sweep", 7)]:
        q.add(name, priority)
    q.cancel("sweep")
    order = []
    try:
        while True:
            order.append(q.pop())
    except KeyError as error:
        order.append(error.args[0])
    merged = list(heapq.merge([1, 4, 9], [2, 3, 10], [0, 11]))
    return {"order": order, "merged": merged, "largest": heapq.nlargest(2, [5, 1, 8, 3])}
