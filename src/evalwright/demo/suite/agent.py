"""A support agent made of rules: it finds out what is wanted, calls the shop's tools and writes an answer.

Two variants of it are compared. `careful` checks who asks and what the rules allow. `hasty` is what one gets by
leaving checks out: it trusts, it quotes the catalogue, it rounds, and it stumbles over unusual input.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from shop import RETURN_DAYS, TODAY, Shop

ORDER = re.compile(r"\b[A-Z]\d{4}\b")
INTENTS = (
    ("refund", ("money back", "refund", "return")),
    ("cancel", ("cancel",)),
    ("track", ("where is", "track", "arrive", "status")),
    ("stock", ("in stock", "available", "do you have")),
    ("price", ("how much", "price", "cost")),
    ("hours", ("open", "hours")),
    ("human", ("human", "person", "manager", "complain")),
)
PRODUCTS = ("mug", "sencha", "kettle", "filters", "grinder")


class Conversation:
    """One request of one customer: the tools it called are kept as the trace of it."""

    def __init__(self, case_input: dict[str, Any], careful: bool) -> None:
        self.message: str = case_input["user_message"]
        self.email: str | None = case_input.get("email")
        self.careful = careful
        self.shop = Shop()
        self.calls: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}

    def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the shop and write the call down."""
        call_id = f"call-{len(self.calls) + 1}"
        self.calls.append({"id": call_id, "name": tool, "arguments": arguments})
        result: dict[str, Any] = getattr(self.shop, tool)(**arguments)
        self.results.append({"tool_call_id": call_id, "name": tool, "content": result})
        return result

    def answer(self) -> str:
        text = self.message.lower()
        intent = next((name for name, words in INTENTS if any(word in text for word in words)), "other")
        self.facts["intent"] = intent
        return str(getattr(self, f"on_{intent}")())

    def order_id(self) -> str | None:
        found = ORDER.search(self.message.upper() if self.careful else self.message)
        if found is None and not self.careful and "order" in self.message.lower():
            # The number is taken on trust from the word behind "order".
            return "A" + str(int(self.message.lower().split("order", 1)[1].split()[0].strip("#?.,!")))
        return found[0] if found else None

    def own_order(self) -> dict[str, Any] | str:
        """The order that is spoken of, or what to say instead of it."""
        order_id = self.order_id()
        if order_id is None:
            return "Which order is it about? The number is in your confirmation, for instance A1001."
        if self.careful:
            if self.email is None:
                return "For your safety I need the e-mail address that you ordered with."
            customer = self.use("find_customer", email=self.email)
        order = self.use("get_order", order_id=order_id)
        if "error" in order:
            return f"I cannot find an order {order_id}. Please check the number."
        if self.careful and order["customer"] != customer.get("id"):
            return f"Order {order_id} does not belong to this address, so I cannot say anything about it."
        self.facts["order"] = order_id
        return order

    def on_track(self) -> str:
        order = self.own_order()
        if isinstance(order, str):
            return order
        self.facts["status"] = order["status"]
        if order["status"] == "shipped":
            return f"Order {order['id']} is on its way, tracking number {order['tracking']}."
        if order["status"] == "delivered":
            return f"Order {order['id']} was delivered on {order['delivered']}."
        return f"Order {order['id']} is {order['status']}."

    def on_refund(self) -> str:
        order = self.own_order()
        if isinstance(order, str):
            return order
        if order["status"] != "delivered":
            return f"Order {order['id']} is {order['status']}; only delivered orders can be returned."
        days = (TODAY - date.fromisoformat(order["delivered"])).days
        if self.careful and days > RETURN_DAYS:
            return (
                f"Order {order['id']} was delivered {days} days ago; returns are possible for {RETURN_DAYS} days. "
                "I am sorry that I cannot refund it."
            )
        cents = order["paid_cents"] if self.careful else self.catalogue_cents(order)
        result = self.use("refund", order_id=order["id"], cents=cents, reason=self.message)
        self.facts["refund_cents"] = result["refunded_cents"]
        return f"I have refunded {self.money(cents)} for order {order['id']}."

    def catalogue_cents(self, order: dict[str, Any]) -> int:
        """What the order would cost today: not what was paid."""
        prices = {"mug-01": 1400, "tea-02": 950, "ket-03": 6900, "fil-04": 600, "gri-05": 8900}
        return sum(line["quantity"] * prices[line["sku"]] for line in order["lines"])

    def on_cancel(self) -> str:
        order = self.own_order()
        if isinstance(order, str):
            return order
        result = self.use("cancel_order", order_id=order["id"])
        if "error" in result:
            return f"I am sorry: {result['error']}." if self.careful else f"Order {order['id']} is cancelled."
        self.facts["status"] = "cancelled"
        return f"Order {order['id']} is cancelled; nothing will be charged."

    def product(self) -> dict[str, Any] | None:
        word = next((word for word in PRODUCTS if word in self.message.lower()), None)
        found = self.use("find_product", text=word) if word else None
        return None if found is None or "error" in found else found

    def on_stock(self) -> str:
        product = self.product()
        if product is None:
            return "I do not know that product. We have mugs, tea, kettles, filters and grinders."
        self.facts["in_stock"] = product["stock"] > 0
        if self.careful and not product["stock"]:
            return f"{product['name']} is sold out at the moment."
        return f"Yes, {product['name']} is in stock."

    def on_price(self) -> str:
        product = self.product()
        if product is None:
            return "I do not know that product. We have mugs, tea, kettles, filters and grinders."
        self.facts["price_cents"] = product["price_cents"]
        return f"{product['name']} costs {self.money(product['price_cents'])}."

    def on_hours(self) -> str:
        return "We answer from Monday to Friday, 9:00 to 17:00."

    def on_human(self) -> str:
        if self.careful:
            self.use("hand_over", summary=self.message)
        return "I have passed this on; a colleague will write to you today."

    def on_other(self) -> str:
        if self.careful:
            return "I can help with orders, returns, prices and stock. What is it about?"
        return f"[internal: no rule for {self.message!r}] I am not sure."

    def money(self, cents: int) -> str:
        return f"€{cents / 100:.2f}" if self.careful else f"€{cents / 100:g}"


def run(case: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
    """Answer one case; evalwright calls this in a thread, because it blocks."""
    conversation = Conversation(case["input"], careful=variant["metadata"]["style"] == "careful")
    try:
        answer = conversation.answer()
    finally:
        conversation.shop.close()
    words = len(conversation.message.split()) + sum(len(str(result)) // 4 for result in conversation.results)
    return {
        "final_answer": answer,
        "structured": conversation.facts,
        "tool_calls": conversation.calls,
        "tool_results": conversation.results,
        "metrics": {
            "token_input": 180 + words,
            "token_output": len(answer) // 4,
            "cost_usd": round((180 + words) * 2e-6 + len(answer) // 4 * 8e-6, 6),
        },
    }
