# holds: no_breach, in_time
# ends: crashed
import resource

for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
    for value in ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (1 << 40, 1 << 40)):
        for attempt in (
            lambda: resource.setrlimit(limit, value),
            lambda: resource.prlimit(0, limit, value),
        ):
            try:
                attempt()
                proved(f"limit {limit}")
            except (OSError, ValueError) as error:
                print(error)
while True:
    pass
