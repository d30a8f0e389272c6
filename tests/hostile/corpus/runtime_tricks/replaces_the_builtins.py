# holds: worker_healthy, calls_declared, in_time
# ends: any
import builtins

for name in list(vars(builtins)):
    if name not in ("__import__", "setattr", "list", "vars"):
        setattr(builtins, name, lambda *given, **named: 0)
await mail.send(to="somebody")
