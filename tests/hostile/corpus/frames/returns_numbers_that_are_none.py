# holds: result_is_json
# ends: any
return {"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 1e400}
