# holds: secret_kept
# ends: finished
from pathlib import Path

try:
    print(Path(CANARY, "secret.txt").read_text())
except OSError as error:
    print(error)
return "tried"
