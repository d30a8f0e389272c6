# holds: in_time, nothing_left
# ends: any
class Sticky:
    def __del__(self):
        while True:
            pass


global_kept = Sticky()
cycle = [Sticky()]
cycle.append(cycle)
return "left"
