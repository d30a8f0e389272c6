# holds: no_breach
# ends: any
# uses: machine_code
if _call(b"\x0f\x34", 20, ()) > 0:
    proved("sysenter")
return "tried"
