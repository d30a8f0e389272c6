# holds: secret_kept
# ends: any
# uses: memory_access, library_calls
# Arguments, environment and auxiliary values lie at the very end of the stack.
end = 0x7FFFFFFFF000
try:
    print(bytes(memory[end - 8192 : end]).replace(b"\0", b" "))
except BaseException as error:
    print(error)
return "tried"
