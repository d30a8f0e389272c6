# holds: worker_healthy, result_is_json
# ends: crashed
value = {}
value["self"] = [value]
return value
