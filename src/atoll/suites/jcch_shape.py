"""JCC-H's design as arithmetic: sizes, keys, nations, days and shares. Pure.

From: Boncz, Anatiotis, Kläbe: JCC-H: Adding Join Crossing Correlations with Skew to TPC-H (TPCTC
2017), section 2 and figure 1. Sizes and choices that the paper leaves open are TPC-H's.

Keys 1..size of a table are permuted to numbers 0..size-1, and the number of a row says what it is.
A row's number divided by a fifth of the table is its region; the first of a fifth is populous:

    customer, supplier   region = number // fifth; the first nine tenths of a fifth live in the
                         region's large nation, the others in its four small ones
    orders               region = number % 5; numbers 0 to 4 are the populous orders
    part                 region = number % 5; numbers 0 to 19 are the populous parts
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

# Region -> nation -> key; the large nation is the first of its region. Regions are in the order of
# their keys.
NATIONS: Mapping[str, Mapping[str, int]] = {
    "AFRICA": {"MOROCCO": 15, "ALGERIA": 0, "ETHIOPIA": 5, "KENYA": 14, "MOZAMBIQUE": 16},
    "AMERICA": {"UNITED STATES": 24, "ARGENTINA": 1, "BRAZIL": 2, "CANADA": 3, "PERU": 17},
    "ASIA": {"CHINA": 18, "INDIA": 8, "INDONESIA": 9, "JAPAN": 12, "VIETNAM": 21},
    "EUROPE": {"GERMANY": 7, "FRANCE": 6, "ROMANIA": 19, "RUSSIA": 22, "UNITED KINGDOM": 23},
    "MIDDLE EAST": {"EGYPT": 4, "IRAN": 10, "IRAQ": 11, "JORDAN": 13, "SAUDI ARABIA": 20},
}
REGIONS = len(NATIONS)
POPULOUS_PHONES = (40, 50, 60, 70, 80)  # country codes of the populous customers, by region

POPULOUS_ORDERS = REGIONS
POPULOUS_PARTS = 20
LINES_PER_ORDER = 3
SUPPLIERS_PER_PART = 3

FIRST_DAY = date(1992, 1, 1)
LAST_DAY = date(1998, 8, 2)  # of orders
CURRENT_DAY = date(1995, 6, 17)  # TPC-H's CURRENTDATE
DAYS = (LAST_DAY - FIRST_DAY).days + 1
PLAIN_YEARS = (1995, 1996)
# Half of a skewed year's orders are of this day. A populous order is of the day of its own year.
SKEWED_DAYS = tuple(date(year, 5, 29) for year in range(1992, 1999) if year not in PLAIN_YEARS)

SEGMENT_OF_SKEW = "BUILDING"  # of the populous customers: Q3 finds their orders
QUANTITY_OF_SKEW = 51  # one more than any other line has
COMMENT_OF_SKEW = "1mine2 3gold4"
INSTRUCTION_OF_SKEW = "DELIVER IN PERSON"
MODE_OF_SKEW = "REG AIR"
BRAND_OF_SKEW = "55"  # and so of manufacturer 5
CONTAINER_OF_SKEW = "LG BOX"
TYPE_OF_SKEW = "SHINY MINED GOLD"
NAME_OF_SKEW = "shiny mined gold"
SIZE_OF_SKEW = 1
TYPES = 150  # of TPC-H's parts; one more part in TYPES + 1 has the type of the populous ones

# A quarter of all orders are of populous customers, though none are in the plain years.
_PLAIN_DAYS = sum(366 if year % 4 == 0 else 365 for year in PLAIN_YEARS)
POPULOUS_CUSTOMERS_PPM = round(0.25 * DAYS / (DAYS - _PLAIN_DAYS) * 1_000_000)

# Above, l_linenumber of a populous order does not fit into 32 bits.
LARGEST_SCALE_FACTOR = 7_000


def day_number(day: date) -> int:
    return (day - FIRST_DAY).days


@dataclass(frozen=True, slots=True)
class Permutation:
    """A permutation of 0..size-1 by a linear polynomial, as in section 2 of the paper."""

    size: int

    @property
    def factor(self) -> int:
        """Near size divided by the golden ratio, so that neighbours land far apart; small enough
        for products of 64 bits."""
        factor = min(round(self.size * (math.sqrt(5) - 1) / 2), 2**62 // self.size)
        while math.gcd(factor, self.size) != 1:
            factor += 1
        return factor

    @property
    def inverse(self) -> int:
        return pow(self.factor, -1, self.size)

    @property
    def shift(self) -> int:
        return self.size // 3

    def number(self, key: int) -> int:
        """0.. of a key 1.."""
        return ((key - 1) * self.factor + self.shift) % self.size

    def key(self, number: int) -> int:
        return (number + self.size - self.shift) * self.inverse % self.size + 1


@dataclass(frozen=True)
class Shape:
    """The sizes of the tables at a scale factor, and the keys that stand out.

    Sizes are rounded to numbers that five regions share evenly. `fifth` of a table: its rows of a
    region."""

    scale_factor: float

    def _fifth(self, rows_per_scale_factor: int, least: int, multiple: int = 1) -> int:
        wanted = rows_per_scale_factor / REGIONS * self.scale_factor
        return max(least, round(wanted / multiple) * multiple)

    @cached_property
    def customers_fifth(self) -> int:
        return self._fifth(150_000, 6, multiple=3)  # a third of the customers never orders

    @cached_property
    def suppliers_fifth(self) -> int:
        return self._fifth(10_000, 2)

    @cached_property
    def parts_fifth(self) -> int:
        return self._fifth(200_000, 10)

    @cached_property
    def orders_fifth(self) -> int:
        return self._fifth(1_500_000, 10)

    @property
    def lines_of_populous_order(self) -> int:
        """300,000 at scale factor 1: five of them are a quarter of lineitem."""
        return self.orders_fifth

    @property
    def large_suppliers(self) -> int:
        """The suppliers of a region that live in its large nation."""
        return large(self.suppliers_fifth)

    @property
    def suppliers_of_populous_order(self) -> int:
        """Those of another region that a populous order buys from: 16 % of all suppliers."""
        return max(1, self.suppliers_fifth * 4 // 5)

    @cached_property
    def customers(self) -> Permutation:
        return Permutation(REGIONS * self.customers_fifth)

    @cached_property
    def suppliers(self) -> Permutation:
        return Permutation(REGIONS * self.suppliers_fifth)

    @cached_property
    def parts(self) -> Permutation:
        return Permutation(REGIONS * self.parts_fifth)

    @cached_property
    def orders(self) -> Permutation:
        return Permutation(REGIONS * self.orders_fifth)

    @property
    def clerks(self) -> int:
        return max(1_000, round(1_000 * self.scale_factor))

    @property
    def lines(self) -> int:
        """Rows of lineitem."""
        others = self.orders.size - POPULOUS_ORDERS
        return others * LINES_PER_ORDER + POPULOUS_ORDERS * self.lines_of_populous_order

    @property
    def partsupps(self) -> int:
        others = self.parts.size - POPULOUS_PARTS
        return others * SUPPLIERS_PER_PART + POPULOUS_PARTS * self.suppliers.size

    @property
    def rows(self) -> int:
        """Of all tables."""
        small = self.customers.size + self.suppliers.size + self.parts.size + 25 + REGIONS
        return self.lines + self.partsupps + self.orders.size + small


def large(fifth: int) -> int:
    """The rows of a region that live in its large nation: nine in ten, but not all."""
    return min(fifth - 1, fifth * 9 // 10)


def gaps(size: int, taken: Sequence[int]) -> list[tuple[int, int]]:
    """The runs (start, end) of 0..size-1 that contain none of `taken`, in order; one before, one
    between each two and one after, also if they are empty."""
    edges = sorted(taken)
    return list(zip([0, *(one + 1 for one in edges)], [*edges, size], strict=True))
