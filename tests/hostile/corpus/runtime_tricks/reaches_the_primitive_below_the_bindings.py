# holds: calls_declared
# ends: any
import inspect
import sys

tried = []
for module in list(sys.modules.values()):
    for name in dir(module):
        if name.lstrip("_") in ("call", "call_tool", "invoke", "tool", "request", "perform"):
            one = getattr(module, name)
            for given in (("bank.transfer", {}), ("bank", "transfer", {})):
                try:
                    answer = one(*given)
                    tried.append(name)
                    if inspect.isawaitable(answer):
                        await answer
                except Exception as error:
                    print(name, type(error).__name__)
return tried
