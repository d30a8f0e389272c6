# holds: secret_kept
# ends: any
import gc
import sys

found = set()
for one in gc.get_objects():
    for inner in gc.get_referents(one):
        if isinstance(inner, (str, bytes)) and len(inner) < 200:
            text = inner if isinstance(inner, str) else inner.decode("latin-1")
            if "canary" in text or "SECRET" in text or "TOKEN" in text:
                found.add(text)
return sorted(found)[:100]
