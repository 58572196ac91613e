"""A support agent: it finds out what a customer wants, uses the shop's tools, and writes an answer.

Rules take the place of a model, so that the example needs no key and no network. Everything else is as in a real agent:
tools that read and change things, a record of every call, and checks that can be forgotten. A variant names in `skips`
the checks that it leaves out; delete a line there, run again, and compare.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from shop import RETURN_DAYS, TODAY, Shop, open_shop

_INTENTS = {
    "human": r"\b(human|real person|complain\w*)\b",
    "return_rules": r"how long .*\breturn|return policy",
    "refund": r"refund|money back|\b(return|send back) (it|them|my|order)\b",
    "cancel": r"\bcancel",
    "address": r"\baddress\b",
    "invoice": r"\b(invoice|receipt)\b",
    "paid": r"\bdid i pay\b|\bwas i charged\b",
    "price": r"\bhow much (is|are)\b|\bprice\b|\bcost\b",
    "stock": r"\bin stock\b|\bavailable\b|\bdo you (have|sell)\b",
    "hours": r"\bopen\b",
    "track": r"\bwhere('s| is| are)\b|\bstatus\b|\barrived?\b",
    "thanks": r"\bthank",
}
"""What customers want, by what they write; the first pattern that is found counts."""

_ORDER_NUMBER = re.compile(r"\b\d{4}\b")
_PRODUCT_WORDS = re.compile(r"\b(mug|sencha|kettle|filter|grinder|scale)s?\b")
_DAYS = re.compile(r"\b(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b")
_NEW_ADDRESS = re.compile(r"\bto (\d+ .+?)[.!?]?$", re.IGNORECASE)

_USD_PER_TOKEN_READ, _USD_PER_TOKEN_WRITTEN = 1e-6, 4e-6
_INSTRUCTION_TOKENS = 350


def answer(case: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
    """The system under test: called once for each case, with the case and the variant as plain data."""
    skips = frozenset(variant["config"].get("skips", ()))
    with open_shop() as shop:
        agent = Agent(shop, case["input"], skips)
        reply = agent.reply()
    return {
        "final_answer": reply.text,
        "structured": {"intent": agent.intent, "outcome": reply.outcome, **reply.facts},
        "messages": [*agent.messages, {"role": "assistant", "content": reply.text}],
        "tool_calls": agent.calls,
        "tool_results": agent.results,
        "metrics": _metrics(agent, reply),
    }


@dataclass
class Reply:
    """The answer to the customer; `outcome` is one of answered, done, refused, asked_back, handed_over."""

    text: str
    outcome: str = "answered"
    facts: dict[str, Any] = field(default_factory=dict)


class CannotGoOn(Exception):
    """Ends a request early: something is missing or not allowed."""

    def __init__(self, text: str, outcome: str) -> None:
        super().__init__(text)
        self.reply: Reply = Reply(text, outcome)


class Agent:
    """One conversation with one customer."""

    def __init__(self, shop: Shop, request: dict[str, Any], skips: frozenset[str]) -> None:
        self._shop = shop
        self._message: str = request["user_message"]
        self._email: str | None = request.get("email")
        self._skips = skips
        text = self._message.lower()
        self.intent: str = next((name for name, pattern in _INTENTS.items() if re.search(pattern, text)), "unclear")
        self.calls: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": self._message}]

    def reply(self) -> Reply:
        handle: Callable[[], Reply] = getattr(self, f"_on_{self.intent}")
        try:
            return handle()
        except CannotGoOn as ending:
            return ending.reply

    def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and keep call and result, which an evaluation of tool use needs."""
        call = {"id": f"call-{len(self.calls) + 1}", "name": tool, "arguments": arguments}
        content: dict[str, Any] = getattr(self._shop, tool)(**arguments)
        self.calls.append(call)
        self.results.append({"tool_call_id": call["id"], "name": tool, "content": content})
        self.messages.append({"role": "assistant", "tool_call": call})
        self.messages.append({"role": "tool", "name": tool, "content": content})
        return content

    # what a message is about

    def _order_number(self) -> str:
        if "order_format" in self._skips:
            words = re.split(r"\border (?:number )?", self._message, maxsplit=1, flags=re.IGNORECASE)
            if len(words) == 2:
                return str(int(words[1].split()[0].strip(".,?!")))
        match = _ORDER_NUMBER.search(self._message)
        if match is None:
            text = "Which order is it about? Its number has four digits and is in your confirmation."
            raise CannotGoOn(text, "asked_back")
        return match[0]

    def _customer(self) -> str:
        if self._email is None:
            raise CannotGoOn("Please tell me the e-mail address that you ordered with.", "asked_back")
        customer = self.use("find_customer", email=self._email)
        if "error" in customer:
            raise CannotGoOn("I find no orders with your e-mail address.", "refused")
        return str(customer["id"])

    def _own_order(self) -> dict[str, Any]:
        """The order in question, if it belongs to the customer."""
        number = self._order_number()
        customer = None if "owner" in self._skips else self._customer()
        order = self.use("find_order", number=number)
        if "error" in order:
            raise CannotGoOn(f"I cannot find an order {number}. Please check the number.", "refused")
        if customer is not None and order["customer"] != customer:
            raise CannotGoOn(f"Order {number} is not one of yours, so I cannot tell or change anything.", "refused")
        return order

    def _product(self) -> dict[str, Any]:
        word = _PRODUCT_WORDS.search(self._message.lower())
        if word is None:
            raise CannotGoOn("We do not sell that; we have tea, mugs, kettles, filters, grinders, scales.", "answered")
        return self.use("find_product", name=word[1])

    # what is done about it

    def _on_track(self) -> Reply:
        if not _ORDER_NUMBER.search(self._message) and "order" not in self._message.lower():
            return self._orders_under_way()
        order = self._own_order()
        number, facts = order["number"], {"order": order["number"]}
        if order["status"] == "shipped":
            return Reply(f"Order {number} is on its way with the tracking number {order['tracking']}.", facts=facts)
        if order["status"] == "delivered":
            return Reply(f"Order {number} was delivered on {order['delivered_on']}.", facts=facts)
        return Reply(f"Order {number} is {order['status']}.", facts=facts)

    def _orders_under_way(self) -> Reply:
        orders = self.use("list_orders", customer=self._customer())["orders"]
        listed = [f"{o['number']} ({o['status']})" for o in orders if o["status"] in ("processing", "shipped")]
        return Reply(f"Under way to you: {', '.join(listed)}." if listed else "No order is under way to you.")

    def _on_refund(self) -> Reply:
        order = self._own_order()
        number = order["number"]
        if order["status"] != "delivered":
            raise CannotGoOn(f"Order {number} is {order['status']}: only delivered orders are refunded.", "refused")
        days = (TODAY - date.fromisoformat(order["delivered_on"])).days
        if days > RETURN_DAYS and "return_window" not in self._skips:
            text = f"Order {number} came {days} days ago; returns are possible for {RETURN_DAYS} days."
            raise CannotGoOn(text, "refused")
        cents = self._worth(order)
        result = self.use("refund", number=number, cents=cents, reason=self._message)
        if "error" in result:
            raise CannotGoOn(f"I cannot do that: {result['error']}.", "refused")
        facts = {"order": number, "amount_cents": cents}
        return Reply(f"I have refunded {self._money(cents)} for order {number}.", "done", facts)

    def _worth(self, order: dict[str, Any]) -> int:
        if "price_paid" not in self._skips:
            return int(order["paid_cents"])
        return sum(line["quantity"] * line["catalogue_cents"] for line in order["lines"])

    def _on_paid(self) -> Reply:
        order = self._own_order()
        cents = self._worth(order)
        facts = {"order": order["number"], "amount_cents": cents}
        return Reply(f"You paid {self._money(cents)} for order {order['number']}.", facts=facts)

    def _on_cancel(self) -> Reply:
        number = self._own_order()["number"]
        self._changed(self.use("cancel_order", number=number))
        return Reply(f"Order {number} is cancelled, nothing will be charged.", "done", {"order": number})

    def _on_address(self) -> Reply:
        number = self._own_order()["number"]
        address = _NEW_ADDRESS.search(self._message)
        if address is None:
            raise CannotGoOn("Where shall it go? Please write street and number.", "asked_back")
        self._changed(self.use("change_address", number=number, address=address[1]))
        return Reply(f"Order {number} will go to {address[1]}.", "done", {"order": number})

    def _changed(self, result: dict[str, Any]) -> None:
        if "error" in result:
            raise CannotGoOn(f"I am sorry: {result['error']}.", "refused")

    def _on_invoice(self) -> Reply:
        number = self._own_order()["number"]
        if "rare_tools" not in self._skips:
            self.use("send_invoice", number=number)
        return Reply(f"The invoice of order {number} is on its way to you by e-mail.", "done", {"order": number})

    def _on_price(self) -> Reply:
        product = self._product()
        text = f"{product['name']}: {self._money(product['price_cents'])}."
        if "staff_notes" in self._skips:
            text = f"{text} {product['staff_note']}".rstrip()
        return Reply(text, facts={"amount_cents": product["price_cents"]})

    def _on_stock(self) -> Reply:
        product = self._product()
        if "stock" in self._skips:
            return Reply(f"Yes, {product['name']} is in stock.")
        stock = self.use("check_stock", sku=product["sku"])
        if stock["stock"]:
            return Reply(f"Yes, {product['name']} is in stock.")
        if stock["restock_on"]:
            return Reply(f"{product['name']} is sold out; more will come on {stock['restock_on']}.")
        return Reply(f"{product['name']} is sold out, and we do not know when more will come.")

    def _on_hours(self) -> Reply:
        day = _DAYS.search(self._message.lower())
        name = day[1] if day else f"{TODAY:%A}".lower()
        return Reply(f"{name.title()}: {self.use('opening_hours', day=name)['hours']}.")

    def _on_return_rules(self) -> Reply:
        return Reply(f"You can return what you bought within {RETURN_DAYS} days after it was delivered.")

    def _on_human(self) -> Reply:
        ticket = self.use("hand_over", summary=self._message)["ticket"]
        return Reply(f"I have passed this on as {ticket}; a colleague will write to you today.", "handed_over")

    def _on_thanks(self) -> Reply:
        return Reply("You are welcome!")

    def _on_unclear(self) -> Reply:
        return Reply("I can help with orders, refunds, prices and stock. What is it about?", "asked_back")

    def _money(self, cents: int) -> str:
        return f"€{cents / 100:.2f}" if "thousands" in self._skips else f"€{cents / 100:,.2f}"


def _metrics(agent: Agent, reply: Reply) -> dict[str, Any]:
    """Tokens as a model would count them, about four characters each: every step reads everything that was said
    before."""
    read = written = 0
    output_tokens = _INSTRUCTION_TOKENS
    for message in [*agent.messages, {"role": "assistant", "content": reply.text}]:
        tokens = len(str(message.get("content") or message.get("tool_call"))) // 4
        if message["role"] == "assistant":
            read, written = read + output_tokens, written + tokens
        output_tokens += tokens
    cost = read * _USD_PER_TOKEN_READ + written * _USD_PER_TOKEN_WRITTEN
    return {"token_input": read, "token_output": written, "cost_usd": round(cost, 6)}
