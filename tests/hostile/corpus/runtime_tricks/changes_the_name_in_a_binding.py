# holds: calls_declared
# ends: any
import types

code = mail.send.__code__
found = [code, *(one for one in code.co_consts if isinstance(one, types.CodeType))]
constants = tuple("bank.transfer" if one == "mail.send" else "transfer" if one == "send" else "bank" if one == "mail" else one for one in code.co_consts)
mail.send.__code__ = code.replace(co_consts=constants)
for name, value in list(mail.send.__globals__.items()):
    print(name, type(value).__name__)
return await mail.send(to="somebody")
