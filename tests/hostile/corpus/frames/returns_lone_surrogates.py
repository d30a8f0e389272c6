# holds: text_is_text, worker_healthy
# ends: any
print("\ud800 \udfff")
return {"\udcff": "\ud800"}
