# holds: text_is_text, worker_healthy
# ends: crashed
raise ValueError("\ud800 and \x00 and \x1b[31m and \u202e")
