# holds: in_time, calls_declared
# ends: any
caught = []
try:
    caught.append(await mail.send(to="first"))
except BaseException as error:
    caught.append(type(error).__name__)
    while True:
        pass
return caught
