# holds: victim_untouched
# ends: any
import resource

for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS):
    try:
        resource.prlimit(VICTIM, limit, (0, 0))
    except OSError as error:
        print(error)
return "tried"
