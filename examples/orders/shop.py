"""A shop: makes the table `orders` and the topic `payments`; orders come, change and go, and are paid.

    python examples/orders/shop.py --deals 500

The variable DATABASE_URL names the database, KAFKA the broker, if it is not 127.0.0.1:9092.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal

import psycopg
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

TOPIC, PARTITIONS = "payments", 4
CUSTOMERS = ("ann", "bob", "cem", "dora", "eva")
STATES = ("new", "packed", "sent", "returned")
#: Orders that are there from the beginning, and about how many there are later.
ORDERS = 200
WAIT_S = 60.0
ORDERS_TABLE = """
create table if not exists orders (
  id bigint primary key, customer text, status text, total numeric(10, 2), placed_at timestamptz not null
)
"""

#: Id, order and amount.
Payment = tuple[int, int, Decimal]


class Shop:
    """One shop. What it does, and in which order, the seed decides."""

    def __init__(self, database: str, servers: str, *, seed: int) -> None:
        self._chance = random.Random(seed)
        self._database = psycopg.connect(database, autocommit=True)
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._ids: list[int] = []
        self._next_id = 1
        self._lost: list[KafkaError] = []
        #: All that were sent, which the broker has after `close`.
        self.payments: list[Payment] = []

    def open(self) -> None:
        """Make the table and the topic; take the first orders."""
        self._execute(ORDERS_TABLE)
        # Changes have to bring the row that was there.
        self._execute("alter table orders replica identity full")
        ((last,),) = self._database.execute("select coalesce(max(id), 0) from orders").fetchall()
        self._next_id = last + 1
        for result in self._admin.create_topics([NewTopic(TOPIC, PARTITIONS)]).values():
            try:
                result.result(WAIT_S)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        with self._database.transaction():
            for _ in range(ORDERS):
                self._order()

    def deal(self) -> None:
        """One transaction of some changes, and some payments."""
        chance = self._chance
        changes: Sequence[Callable[[], None]] = (self._order, self._change, self._change, self._remove, self._renumber)
        before = list(self._ids)
        with self._database.transaction() as transaction:
            for _ in range(chance.choice((1, 1, 2, 8))):
                # About as many go as come, so that results stay small.
                chance.choice(changes if len(self._ids) > ORDERS else changes[:3])()
            if chance.random() < 0.05:
                self._ids = before
                raise psycopg.Rollback(transaction)
        for _ in range(chance.choice((0, 1, 1, 3))):
            self._pay()
        self._producer.poll(0)

    def close(self) -> None:
        """Wait until the broker has all payments."""
        left = self._producer.flush(WAIT_S) + len(self._lost)
        self._database.close()
        if left:
            raise TimeoutError(f"{left} payments did not reach the broker {self._lost[:1]}")

    def _order(self) -> None:
        number, self._next_id = self._next_id, self._next_id + 1
        self._execute(
            "insert into orders values (%s, %s, 'new', %s, clock_timestamp())",
            number,
            self._chance.choice(CUSTOMERS),
            self._amount(),
        )
        self._ids.append(number)

    def _change(self) -> None:
        number = self._chance.choice(self._ids)
        if self._chance.random() < 0.5:
            self._execute("update orders set status = %s where id = %s", self._chance.choice(STATES), number)
        else:
            self._execute("update orders set total = %s where id = %s", self._amount(), number)

    def _remove(self) -> None:
        number = self._ids.pop(self._chance.randrange(len(self._ids)))
        self._execute("delete from orders where id = %s", number)
        if self._chance.random() < 0.3:
            # The same id again, as another order.
            self._execute("insert into orders values (%s, 'zoe', 'new', %s, now())", number, self._amount())
            self._ids.append(number)

    def _renumber(self) -> None:
        place = self._chance.randrange(len(self._ids))
        number, self._next_id = self._next_id, self._next_id + 1
        self._execute("update orders set id = %s where id = %s", number, self._ids[place])
        self._ids[place] = number

    def _pay(self) -> None:
        """For an order that is there, was there, or comes soon."""
        order = self._chance.choice([*self._ids, self._chance.randrange(1, self._next_id + 20)])
        payment = (len(self.payments) + 1, order, self._amount())
        self.payments.append(payment)
        value = {"id": payment[0], "order_id": order, "amount": str(payment[2])}
        partition = self._chance.randrange(PARTITIONS)
        self._producer.produce(TOPIC, json.dumps(value), partition=partition, on_delivery=self._note)

    def _note(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self._lost.append(error)

    def _amount(self) -> Decimal:
        return Decimal(self._chance.randrange(1, 100_000)) / 100

    def _execute(self, statement: str, *values: object) -> None:
        self._database.execute(statement.encode(), values)


def main() -> int:
    parser = argparse.ArgumentParser(description="Lets orders come, change and go, and be paid.")
    parser.add_argument("--deals", type=int, default=500, help="how many transactions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="decides what happens (default: %(default)s)")
    options = parser.parse_args()
    shop = Shop(os.environ["DATABASE_URL"], os.environ.get("KAFKA", "127.0.0.1:9092"), seed=options.seed)
    shop.open()
    for _ in range(options.deals):
        shop.deal()
        time.sleep(0.02)
    shop.close()
    sys.stdout.write(f"{options.deals} deals, {len(shop.payments)} payments\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
