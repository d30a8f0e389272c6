# holds: no_breach
# ends: any
# uses: memory_access, library_calls
RARE = {
    "personality": (135, 0x40000),
    "acct": (163, 0),
    "iopl": (172, 3),
    "ioperm": (173, 0, 1024, 1),
    "modify_ldt": (154, 0, 0, 0),
    "sethostname": (170, 0, 0),
    "syslog": (103, 10, 0, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "msgget": (68, 0, 0o1600),
    "semget": (64, 0, 1, 0o1600),
    "inotify_init": (253,),
    "fanotify_init": (300, 0, 0),
    "timerfd_create": (283, 0, 0),
    "signalfd": (282, -1, 0, 8),
    "eventfd": (284, 0),
    "kcmp": (312, 1, 1, 0, 0, 0),
    "pidfd_open": (434, 1, 0),
    "landlock": (444, 0, 0, 1),
    "fsopen": (430, 0, 0),
    "open_tree": (428, -100, 0, 0),
    "quotactl": (179, 0, 0, 0, 0),
    "mbind": (237, 0, 0, 0, 0, 0, 0),
    "setuid": (105, 0),
    "setgroups": (116, 0, 0),
    "capset": (126, 0, 0),
    "clock_settime": (227, 0, 0),
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
