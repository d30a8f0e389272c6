# result: {"cached": ["keep"], "alive": [true, false], "closed": ["temporary closed"]}
import gc
import weakref


class Picture:
    def __init__(self, name):
        self.name = name


async def main():
    cache = weakref.WeakValueDictionary()
    keep = Picture("keep")
    cache["keep"], cache["drop"] = keep, Picture("drop")
    gc.collect()
    closed = []
    temporary = Picture("temporary")
    finalizer = weakref.finalize(temporary, closed.append, "temporary closed")
    alive = finalizer.alive
    del temporary
    gc.collect()
    return {"cached": sorted(cache), "alive": [alive, finalizer.alive], "closed": closed}
