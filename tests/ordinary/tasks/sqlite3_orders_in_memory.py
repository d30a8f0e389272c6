# result: {"rows": [{"name": "Ada", "n": 2, "total": 15.0}, {"name": "Bob", "n": 1, "total": 7.0}, {"name": "Cy", "n": 0, "total": 0}], "clash": "UNIQUE constraint failed: customers.name", "backwards": "adA", "ranked": [[10.5, 1.0], [7.0, 2.0], [4.5, 3.0]]}
import sqlite3


async def main():
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.executescript(
        """
        create table customers (id integer primary key, name text unique not null);
        create table orders (id integer primary key, customer int references customers, amount real);
        """
    )
    with db:
        db.executemany("insert into customers (name) values (?)", [("Ada",), ("Bob",), ("Cy",)])
        db.executemany("insert into orders (customer, amount) values (?, ?)", [(1, 10.5), (1, 4.5), (2, 7)])
    try:
        with db:
            db.execute("insert into customers (name) values ('Ada')")
    except sqlite3.IntegrityError as e:
        clash = str(e)
    rows = db.execute(
        """select name, count(o.id) as n, coalesce(sum(amount), 0) as total
           from customers c left join orders o on o.customer = c.id
           group by c.id order by total desc"""
    ).fetchall()
    db.create_function("reversed", 1, lambda s: s[::-1])
    backwards = db.execute("select reversed(name) from customers where id = 1").fetchone()[0]
    ranked = db.execute("select amount, rank() over (order by amount desc) as r from orders order by r").fetchall()
    db.close()
    return {"rows": [dict(r) for r in rows], "clash": clash, "backwards": backwards, "ranked": [list(map(float, r)) for r in ranked]}
