# result: {"pick": true, "token": 22, "hex": 16, "distinct": 100, "version": true, "below": true, "named": "aad03681-8b63-5304-89e0-8ca8f49461b5"}
import random
import secrets
import uuid

pick = random.choice(["red", "green", "blue"])
token = secrets.token_urlsafe(16)
ids = {str(uuid.uuid4()) for _ in range(100)}
return {
    "pick": pick in ("red", "green", "blue"),
    "token": len(token),
    "hex": len(secrets.token_hex(8)),
    "distinct": len(ids),
    "version": {uuid.UUID(i).version for i in ids} == {4},
    "below": 0 <= secrets.randbelow(10) < 10,
    "named": str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")),
}
