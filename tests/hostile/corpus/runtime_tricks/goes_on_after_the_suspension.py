# holds: calls_declared, journal_unchanged
# ends: any
import contextlib

for number in range(5):
    with contextlib.suppress(BaseException):
        await mail.send(to=str(number))
        continue
    print("after")
return "all caught"
