# holds: in_time, nothing_left
# ends: any
import gc

kept = []


class Phoenix:
    def __del__(self):
        kept.append(Phoenix())
        kept.append(Phoenix())
        del kept[0]


Phoenix()
gc.collect()
return len(kept)
