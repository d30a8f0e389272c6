# holds: memory_bounded, no_breach, in_time
# ends: any
import sqlite3

database = sqlite3.connect("/tmp/large.db")
database.execute("create table t (a)")
while True:
    try:
        database.execute("insert into t values (zeroblob(1000000))")
        database.commit()
    except sqlite3.Error as error:
        print(error)
        database.execute("create temporary table if not exists u as select zeroblob(100000000)")
