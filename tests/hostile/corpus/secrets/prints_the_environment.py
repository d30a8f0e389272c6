# holds: secret_kept
# ends: finished
import os

print(dict(os.environ), os.environb if hasattr(os, "environb") else "")
return {"environment": dict(os.environ)}
