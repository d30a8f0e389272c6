# holds: no_breach
# ends: crashed
# uses: machine_code
if old_system_call(20) > 0:
    proved("int 0x80")
return "tried"
