# holds: worker_healthy, result_is_json
# ends: any
return {"a": {1, 2}, "b": object(), (1, 2): b"x", None: print, "c": (n for n in range(3))}
