# result: {"found": ["buy milk", "milk the cow"], "file": true}
import sqlite3
from pathlib import Path

path = Path("/tmp/notes.db")
with sqlite3.connect(path) as db:
    db.execute("create table notes (id integer primary key, body text)")
    db.executemany("insert into notes (body) values (?)", [("buy milk",), ("call the bank",), ("milk the cow",)])
db.close()
again = sqlite3.connect(path)
found = [r[0] for r in again.execute("select body from notes where body like '%milk%' order by id")]
path_exists = path.exists()
again.close()
path.unlink()
return {"found": found, "file": path_exists}
