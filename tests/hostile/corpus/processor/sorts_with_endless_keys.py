# holds: in_time
# ends: crashed
class Slow:
    def __lt__(self, other):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass


return sorted([Slow(), Slow()])
