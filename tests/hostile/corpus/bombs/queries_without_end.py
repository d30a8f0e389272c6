# holds: in_time, memory_bounded
# ends: crashed
import sqlite3

database = sqlite3.connect(":memory:")
query = "with recursive n(a) as (select 1 union all select a + 1 from n) select count(*) from n"
return database.execute(query).fetchone()
