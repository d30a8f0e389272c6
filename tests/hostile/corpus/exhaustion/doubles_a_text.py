# holds: memory_bounded, in_time
# ends: any
text = "backstay"
while True:
    text += text
