# result: {"waves": [["fetch"], ["build", "docs"], ["test"], ["deploy"]], "cycle": ["a", "b"]}
from graphlib import CycleError, TopologicalSorter


async def main():
    needs = {"deploy": {"test", "build"}, "test": {"build"}, "build": {"fetch"}, "docs": {"fetch"}}
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    waves = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        waves.append(ready)
        sorter.done(*ready)
    try:
        list(TopologicalSorter({"a": ["b"], "b": ["a"]}).static_order())
        cycle = None
    except CycleError as e:
        cycle = sorted(set(e.args[1]))
    return {"waves": waves, "cycle": cycle}
