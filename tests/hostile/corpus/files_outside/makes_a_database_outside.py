# holds: files_unchanged
# ends: finished
import sqlite3

for path in (CANARY + "/" + MARK + ".db", "file:" + CANARY + "/uri.db?mode=rwc"):
    try:
        database = sqlite3.connect(path, uri=path.startswith("file:"))
        database.execute("create table t (a)")
        database.commit()
    except sqlite3.Error as error:
        print(error)
try:
    inside = sqlite3.connect(":memory:")
    inside.execute(f"attach '{CANARY}/attached.db' as other")
    inside.execute("create table other.t (a)")
    inside.execute(f"vacuum into '{CANARY}/vacuumed.db'")
except sqlite3.Error as error:
    print(error)
return "tried"
