"""The shop's database and the tools that its support agents have.

The database is made in memory, the same for every conversation, so that refunds of one case are not seen by
another. Every tool takes and returns plain data; what it refuses, it refuses with an `error`.
"""

from __future__ import annotations

import sqlite3
from datetime import date, timedelta
from typing import Any

TODAY = date(2026, 3, 16)
RETURN_DAYS = 30

_SCHEMA = """
create table customers (id text primary key, name text, email text);
create table products (sku text primary key, name text, price_cents integer, stock integer);
create table orders (id text primary key, customer text, status text, delivered text, tracking text);
create table lines (order_id text, sku text, quantity integer, price_cents integer);
create table refunds (order_id text, cents integer, reason text);
"""

_CUSTOMERS = [
    ("c-ada", "Ada Brandt", "ada@example.com"),
    ("c-ben", "Ben Okafor", "ben@example.com"),
    ("c-cleo", "Cleo Marsh", "cleo@example.com"),
]

_PRODUCTS = [
    ("mug-01", "Stoneware mug", 1400, 31),
    ("tea-02", "Sencha, 100 g", 950, 0),
    ("ket-03", "Gooseneck kettle", 6900, 4),
    ("fil-04", "Paper filters, 100", 600, 120),
    ("gri-05", "Hand grinder", 8900, 2),
]

# Prices in order lines are what the customer paid; some products have become dearer since.
_ORDERS = [
    ("A1001", "c-ada", "delivered", 8, "DP-7731", [("mug-01", 2, 1200)]),
    ("A1002", "c-ada", "shipped", None, "DP-8123", [("fil-04", 3, 600)]),
    ("A1003", "c-ada", "delivered", 55, "DP-5520", [("ket-03", 1, 6500)]),
    ("B2001", "c-ben", "processing", None, None, [("gri-05", 1, 8900)]),
    ("B2002", "c-ben", "delivered", 20, "DP-7002", [("ket-03", 1, 6400), ("fil-04", 1, 550)]),
    ("C3001", "c-cleo", "delivered", 2, "DP-8090", [("gri-05", 1, 8500), ("mug-01", 1, 1400)]),
    ("C3002", "c-cleo", "cancelled", None, None, [("tea-02", 4, 950)]),
]


class Shop:
    """One copy of the shop, with its tools as methods."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.row_factory = sqlite3.Row
        self._database.executescript(_SCHEMA)
        self._database.executemany("insert into customers values (?, ?, ?)", _CUSTOMERS)
        self._database.executemany("insert into products values (?, ?, ?, ?)", _PRODUCTS)
        for order_id, customer, status, days_ago, tracking, lines in _ORDERS:
            delivered = None if days_ago is None else str(TODAY - timedelta(days=days_ago))
            self._database.execute(
                "insert into orders values (?, ?, ?, ?, ?)", (order_id, customer, status, delivered, tracking)
            )
            self._database.executemany("insert into lines values (?, ?, ?, ?)", [(order_id, *line) for line in lines])

    def close(self) -> None:
        self._database.close()

    def _row(self, query: str, *values: Any) -> dict[str, Any] | None:
        row = self._database.execute(query, values).fetchone()
        return None if row is None else dict(row)

    def find_customer(self, email: str) -> dict[str, Any]:
        """The customer with an e-mail address."""
        return self._row("select id, name from customers where email = ?", email.lower()) or {
            "error": f"no customer with the address {email}"
        }

    def get_order(self, order_id: str) -> dict[str, Any]:
        """An order with its lines and what was paid in all."""
        order = self._row("select * from orders where id = ?", order_id)
        if order is None:
            return {"error": f"no order {order_id}"}
        lines = self._database.execute(
            "select sku, quantity, price_cents from lines where order_id = ?", (order_id,)
        ).fetchall()
        order["lines"] = [dict(line) for line in lines]
        order["paid_cents"] = sum(line["quantity"] * line["price_cents"] for line in lines)
        return order

    def find_product(self, text: str) -> dict[str, Any]:
        """The product whose name holds a text, with price and stock."""
        return self._row("select * from products where name like ? order by sku", f"%{text}%") or {
            "error": f"no product called {text}"
        }

    def refund(self, order_id: str, cents: int, reason: str) -> dict[str, Any]:
        """Pay money back. The tool does as it is told: the agent must check that it may."""
        if self.get_order(order_id).get("error"):
            return {"error": f"no order {order_id}"}
        self._database.execute("insert into refunds values (?, ?, ?)", (order_id, cents, reason))
        return {"refunded_cents": cents}

    def cancel_order(self, order_id: str) -> dict[str, Any]:
        """Cancel an order that has not been shipped."""
        order = self.get_order(order_id)
        if order.get("status") != "processing":
            return {"error": f"order {order_id} is {order.get('status', 'unknown')} and cannot be cancelled"}
        self._database.execute("update orders set status = 'cancelled' where id = ?", (order_id,))
        return {"status": "cancelled"}

    def hand_over(self, summary: str) -> dict[str, Any]:
        """Give the conversation to a person."""
        return {"ticket": "T-1", "summary": summary}
