# holds: nothing_left, no_breach, in_time
# ends: any
import threading

started = 0
for _ in range(2000):
    try:
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        started += 1
    except RuntimeError as error:
        print(error)
        break
if started:
    proved(f"{started} threads")
return started
