# holds: no_breach
# ends: finished
import os

PATHS = """/proc/version /proc/cpuinfo /proc/meminfo /proc/mounts /proc/self/mountinfo /proc/self/maps /proc/self/status
/proc/kallsyms /proc/keys /proc/net/tcp /proc/net/unix /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname
/proc/cmdline /proc/modules /proc/sched_debug /proc/timer_list /proc/interrupts /proc/self/cgroup /proc/config.gz
/sys/kernel/notes /sys/class /sys/devices /sys/fs/cgroup /sys/kernel/debug /sys/kernel/tracing /sys/firmware""".split()
for path in PATHS:
    try:
        if os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(10):
            proved(path)
    except OSError:
        pass
return "tried"
