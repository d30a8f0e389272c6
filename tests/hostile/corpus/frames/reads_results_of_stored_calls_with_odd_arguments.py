# holds: calls_declared
# ends: any
# uses: forged_frames
for given in ({}, {"ref": 5}, {"ref": None}, {"ref": ["a"]}, {"ref": "../../etc/passwd"}, {"other": "x"}, {"ref": "a", "b": 1}):
    send_everywhere(frame({"calls": [{"i": 0, "tool": "engine.result", "args": given}]}))
return "honest"
