# holds: no_breach
# ends: finished
# uses: memory_access, library_calls
RARE = {
    "personality": (135, 0x40000),
    "sethostname": (170, 0, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "msgget": (68, 0, 0o1600),
    "semget": (64, 0, 1, 0o1600),
    "inotify_init": (253,),
    "timerfd_create": (283, 0, 0),
    "signalfd": (282, -1, 0, 8),
    "eventfd": (284, 0),
    "landlock": (444, 0, 0, 1),
    "mbind": (237, 0, 0, 0, 0, 0, 0),
    "setuid": (105, 0),
    "setgroups": (116, 0, 0),
    "capset": (126, 0, 0),
    "splice": (275, 0, 0, 0, 0, 0, 0),
    "tee": (276, 0, 0, 0, 0),
    "vmsplice": (278, 0, 0, 0, 0),
    "remap_file_pages": (216, 0, 0, 0, 0, 0),
    "memfd_secret": (447, 0),
    "name_to_handle_at": (303, 0, 0, 0, 0, 0),
    "pkey_alloc": (330, 0, 0),
    "mq_open": (240, 0, 0, 0, 0),
}
for name, call in RARE.items():
    if system_call(*call) not in (-1, -38):
        proved(name)
return "tried"
