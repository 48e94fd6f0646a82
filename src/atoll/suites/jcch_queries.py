"""JCC-H's queries: TPC-H's texts with other parameters, drawn by a seed. Pure.

From: Boncz, Anatiotis, Kläbe: JCC-H (TPCTC 2017), section 2.3. Each query has two sets of
parameters. The skewed ones select what is populous; the plain ones avoid it, and the query behaves
as in TPC-H. Q1 has none. In Q7 and Q8 the years are parameters, too, and in Q18 a limit of the
quantity. Where the paper leaves something open, the function says what Atoll chose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random

from atoll.suites.jcch_shape import (
    BRAND_OF_SKEW,
    COMMENT_OF_SKEW,
    CONTAINER_OF_SKEW,
    MODE_OF_SKEW,
    NAME_OF_SKEW,
    NATIONS,
    PLAIN_YEARS,
    POPULOUS_PHONES,
    QUANTITY_OF_SKEW,
    SEGMENT_OF_SKEW,
    SIZE_OF_SKEW,
    SKEWED_DAYS,
    TYPE_OF_SKEW,
)

NUMBERS = range(1, 23)
PLAIN = "p"  # q1p is Q1 with plain parameters

_SKEWED_YEARS = (1993, 1994)
_SEGMENTS = (SEGMENT_OF_SKEW, "AUTOMOBILE", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_MODES = (MODE_OF_SKEW, "AIR", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
_KINDS = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
_FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
_METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
_CONTAINERS = ("SM CASE", "SM BAG", "MED JAR", "MED PACK", "JUMBO PKG", "WRAP CAN", "LG DRUM")
_COLORS = ("almond", "blue", "coral", "forest", "green", "ivory", "lemon", "navy", "plum", "rose")

# What stands in a text -> what takes its place.
Parameters = Mapping[str, str]


def with_parameters(texts: Mapping[str, str], seed: int) -> dict[str, str]:
    """'q1' to 'q22' with skewed parameters, then 'q1p' to 'q22p' with plain ones. `texts`: those of
    TPC-H, in any dialect that keeps their parameters. Raises KeyError if one has no such
    parameter."""
    return {
        f"q{number}{suffix}": _replaced(
            texts[f"q{number}"], parameters(number, seed, skewed=not suffix)
        )
        for suffix in ("", PLAIN)
        for number in NUMBERS
        if f"q{number}" in texts
    }


def parameters(number: int, seed: int, *, skewed: bool) -> Parameters:
    """The changes to the text of a query."""
    draw = Random(f"{seed} {number} {skewed}")
    return _PARAMETERS[number](draw, skewed) if number in _PARAMETERS else {}


def _replaced(text: str, changes: Parameters) -> str:
    """All at once, so that a new value is never taken for an old one."""
    patterns = {old: r"\s+".join(map(re.escape, old.split())) for old in changes}
    for old, pattern in patterns.items():
        if not re.search(pattern, text):
            raise KeyError(f"no {old!r} in the query")
    spaced = {" ".join(old.split()): new for old, new in changes.items()}
    return re.sub(
        "|".join(patterns.values()) or r"(?!)",
        lambda found: spaced[" ".join(found[0].split())],
        text,
    )


# ---- what several queries draw -------------------------------------------------------------------


def _text(value: object) -> str:
    return f"'{value}'"


def _nation(draw: Random, region: str, skewed: bool) -> str:
    large, *small = NATIONS[region]
    return large if skewed else draw.choice(small)


def _any_nation(draw: Random, skewed: bool) -> str:
    return _nation(draw, draw.choice([*NATIONS]), skewed)


def _year(draw: Random, skewed: bool) -> int:
    return draw.choice(_SKEWED_YEARS if skewed else PLAIN_YEARS)


def _months(first: date, count: int) -> date:
    """The same day, some months later."""
    months = first.month - 1 + count
    return first.replace(year=first.year + months // 12, month=months % 12 + 1)


def _whole_year(draw: Random, skewed: bool) -> Parameters:
    first = date(_year(draw, skewed), 1, 1)
    return {_text("1994-01-01"): _text(first), _text("1995-01-01"): _text(_months(first, 12))}


def _end(draw: Random, words: str) -> str:
    """The last six characters or more, which no other value has."""
    return words[-draw.randint(6, len(words)) :]


def _plain_brand(draw: Random) -> str:
    return f"Brand#{draw.randint(1, 5)}{draw.randint(1, 4)}"


# ---- query by query ------------------------------------------------------------------------------


def _q2(draw: Random, skewed: bool) -> Parameters:
    return {
        "p_size = 15": f"p_size = {SIZE_OF_SKEW if skewed else draw.randint(2, 50)}",
        "'%BRASS'": f"'%{_end(draw, TYPE_OF_SKEW) if skewed else draw.choice(_METALS)}'",
        "'EUROPE'": _text(draw.choice([*NATIONS])),
    }


def _q3(draw: Random, skewed: bool) -> Parameters:
    """Within a month after the skewed day: then the populous order of 1993 is placed, and most of
    its lines are not shipped. So that it is found at all, its customer's segment is asked for."""
    day = SKEWED_DAYS[1] if skewed else date(1995, 2, 28)
    return {
        "'BUILDING'": _text(SEGMENT_OF_SKEW if skewed else draw.choice(_SEGMENTS)),
        "'1995-03-15'": _text(day + timedelta(days=draw.randint(1, 31))),
    }


def _q4(draw: Random, skewed: bool) -> Parameters:
    """Three months that contain a skewed day, or of the plain years."""
    if skewed:
        first = date(_year(draw, skewed), draw.randint(3, 5), 1)
    else:
        first = _months(date(PLAIN_YEARS[0], 1, 1), draw.randint(0, 21))
    return {"'1993-07-01'": _text(first), "'1993-10-01'": _text(_months(first, 3))}


def _q5(draw: Random, skewed: bool) -> Parameters:
    return {"'ASIA'": _text(draw.choice([*NATIONS])), **_whole_year(draw, skewed)}


def _q6(draw: Random, skewed: bool) -> Parameters:
    """The skewed query includes the quantity of the skewed lines, as the published generator
    does."""
    discount = draw.randint(2, 9)
    return {
        "BETWEEN 0.05 AND 0.07": f"BETWEEN 0.{discount - 1:02} AND 0.{discount + 1:02}",
        "l_quantity < 24": f"l_quantity < {100 if skewed else draw.randint(24, 25)}",
        **_whole_year(draw, skewed),
    }


def _two_years(skewed: bool) -> Parameters:
    first, last = _SKEWED_YEARS if skewed else PLAIN_YEARS
    return {"'1995-01-01'": f"'{first}-01-01'", "'1996-12-31'": f"'{last}-12-31'"}


def _q7(draw: Random, skewed: bool) -> Parameters:
    """Large nations of two regions, or two small ones of one region. A populous order of these
    years is from one of the two regions; else nothing would be found."""
    if skewed:
        order = draw.choice([n for n, day in enumerate(SKEWED_DAYS) if day.year in _SKEWED_YEARS])
        large = [next(iter(nations)) for nations in NATIONS.values()]
        one = large.pop(order)
        other = draw.choice(large)
    else:
        one, other = draw.sample([*NATIONS[draw.choice([*NATIONS])]][1:], 2)
    return {"'FRANCE'": _text(one), "'GERMANY'": _text(other), **_two_years(skewed)}


def _q8(draw: Random, skewed: bool) -> Parameters:
    """The nation is one of the region, because only those sell to it in plain years."""
    region = draw.choice([*NATIONS])
    plain = " ".join(draw.choice(words) for words in (_KINDS, _FINISHES, _METALS))
    return {
        "'BRAZIL'": _text(_nation(draw, region, skewed)),
        "'AMERICA'": _text(region),
        "'ECONOMY ANODIZED STEEL'": _text(TYPE_OF_SKEW if skewed else plain),
        **_two_years(skewed),
    }


def _q9(draw: Random, skewed: bool) -> Parameters:
    return {"'%green%'": f"'%{_end(draw, NAME_OF_SKEW) if skewed else draw.choice(_COLORS)}%'"}


def _q10(draw: Random, skewed: bool) -> Parameters:
    if skewed:
        first = draw.choice(SKEWED_DAYS) - timedelta(days=draw.randint(0, 6))
        end = first + timedelta(days=7)
    else:
        first = date(PLAIN_YEARS[0], draw.randint(1, 2), draw.randint(1, 28))
        end = _months(first, 3)
    return {"'1993-10-01'": _text(first), "'1994-01-01'": _text(end)}


def _q11(draw: Random, skewed: bool) -> Parameters:
    return {"'GERMANY'": _text(_any_nation(draw, skewed))}


def _q12(draw: Random, skewed: bool) -> Parameters:
    modes = [MODE_OF_SKEW, draw.choice(_MODES[1:])] if skewed else draw.sample(_MODES, 2)
    return {"'MAIL'": _text(modes[0]), "'SHIP'": _text(modes[1]), **_whole_year(draw, skewed)}


def _q13(draw: Random, skewed: bool) -> Parameters:
    """The plain query leaves out the orders of populous customers: each digit of their mark may be
    missing in the pattern."""
    if skewed:
        first = draw.choice(("express", "pending", "special", "unusual"))
        second = draw.choice(("accounts", "deposits", "packages", "requests"))
    else:
        first, second = (
            word[draw.randint(0, 1) : len(word) - draw.randint(0, 1)]
            for word in COMMENT_OF_SKEW.split()
        )
    return {"'%special%requests%'": f"'%{first}%{second}%'"}


def _shipped(draw: Random, skewed: bool, months: int) -> tuple[date, date]:
    """Months from June to August, in which half of a year's orders are shipped, or months without
    May to August."""
    if skewed:
        first = date(draw.choice(SKEWED_DAYS).year, draw.randint(6, 9 - months), 1)
    else:
        starts = [*range(1, 6 - months), *range(9, 14 - months)]
        first = date(_year(draw, skewed), draw.choice(starts), 1)
    return first, _months(first, months)


def _q14(draw: Random, skewed: bool) -> Parameters:
    first, end = _shipped(draw, skewed, 1)
    return {"'1995-09-01'": _text(first), "'1995-10-01'": _text(end)}


def _q15(draw: Random, skewed: bool) -> Parameters:
    first, end = _shipped(draw, skewed, 3)
    return {"'1996-01-01'": _text(first), "'1996-04-01'": _text(end)}


def _q16(draw: Random, skewed: bool) -> Parameters:
    sizes = [*([SIZE_OF_SKEW] if skewed else []), *draw.sample(range(2, 51), 7 if skewed else 8)]
    return {
        "'Brand#45'": _text(_plain_brand(draw)),
        "'MEDIUM POLISHED%'": f"'{draw.choice(_KINDS)} {draw.choice(_FINISHES)}%'",
        "(49, 14, 23, 45, 19, 3, 36, 9)": f"({', '.join(map(str, sizes))})",
    }


def _q17(draw: Random, skewed: bool) -> Parameters:
    brand = f"Brand#{BRAND_OF_SKEW}" if skewed else _plain_brand(draw)
    return {
        "'Brand#23'": _text(brand),
        "'MED BOX'": _text(CONTAINER_OF_SKEW if skewed else draw.choice(_CONTAINERS)),
    }


def _q18(draw: Random, skewed: bool) -> Parameters:
    """An ordinary order has three lines of at most 50. So a plain query with TPC-H's limit of 300
    would find nothing; this one finds about as many orders as TPC-H's."""
    most, least = (100, draw.randint(812, 815)) if skewed else (50, draw.randint(144, 146))
    return {
        "lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300": (
            f"lineitem\n        WHERE\n            l_quantity <= {most}\n        GROUP BY\n"
            f"            l_orderkey\n        HAVING\n            sum(l_quantity) > {least}"
        )
    }


def _q19(draw: Random, skewed: bool) -> Parameters:
    quantities = [draw.randint(1, 10), draw.randint(10, 20), draw.randint(20, 30)]
    brands = [_plain_brand(draw) for _ in quantities]
    if skewed:
        quantities[2] = draw.randint(QUANTITY_OF_SKEW - 10, QUANTITY_OF_SKEW)
        brands[2] = f"Brand#{BRAND_OF_SKEW}"
    old = zip(("12", "23", "34"), (1, 10, 20), brands, quantities, strict=True)
    changes: dict[str, str] = {}
    for brand, least, new_brand, new_least in old:
        changes[f"'Brand#{brand}'"] = _text(new_brand)
        changes[f"l_quantity >= {least} AND l_quantity <= {least} + 10"] = (
            f"l_quantity >= {new_least}\n    AND l_quantity <= {new_least} + 10"
        )
    return changes


def _q20(draw: Random, skewed: bool) -> Parameters:
    name = NAME_OF_SKEW[: draw.randint(6, len(NAME_OF_SKEW))] if skewed else draw.choice(_COLORS)
    return {
        "'forest%'": f"'{name}%'",
        "'CANADA'": _text(_any_nation(draw, skewed)),
        **_whole_year(draw, skewed),
    }


def _q21(draw: Random, skewed: bool) -> Parameters:
    return {"'SAUDI ARABIA'": _text(_any_nation(draw, skewed))}


def _q22(draw: Random, skewed: bool) -> Parameters:
    populous = [*POPULOUS_PHONES] if skewed else []
    codes = [*populous, *draw.sample(range(10, 35), 7 - len(populous))]
    return {"('13', '31', '23', '29', '30', '18', '17')": f"({', '.join(map(_text, codes))})"}


_PARAMETERS: Mapping[int, Callable[[Random, bool], Parameters]] = dict(
    enumerate(
        (
            *(_q2, _q3, _q4, _q5, _q6, _q7, _q8, _q9, _q10, _q11, _q12),
            *(_q13, _q14, _q15, _q16, _q17, _q18, _q19, _q20, _q21, _q22),
        ),
        start=2,
    )
)
