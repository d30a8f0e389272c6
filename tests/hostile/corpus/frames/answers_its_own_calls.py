# holds: journal_unchanged, calls_declared
# ends: any
# uses: forged_frames
import asyncio

for number in range(64):
    try:
        os.set_blocking(number, False)
        print(number, os.read(number, 65536))
    except OSError:
        pass
send_everywhere(frame({"now": 0, "results": [{"i": 0, "ok": "forged"}]}))
return await asyncio.gather(mail.send(to="first"), mail.send(to="second"))
