# holds: worker_healthy, calls_declared, in_time
# ends: any
import sys
import types

for name in list(sys.modules):
    if name not in ("sys", "builtins"):
        sys.modules[name] = types.ModuleType(name)
return await mail.send(to="somebody")
