-- The initial rows of TPC-C (clause 4.3.3.1), drawn by the server. A session draws the same rows
-- each time after setseed.

-- Texts are pieces of one row of random letters. It is short enough not to lie apart from its row,
-- and bytes, because to find a place in text takes time.
create unlogged table letters as
select string_agg(chr(97 + floor(random() * 26)::int), '')::bytea as pool
from generate_series(1, 1900);

create function letters(pool bytea, low int, high int) returns text language sql as $$
    select convert_from(substr(
        pool, 1 + floor(random() * (1900 - high))::int,
        low + floor(random() * (high - low + 1))::int
    ), 'UTF8')
$$;

create function digits(count int) returns text language sql as $$
    select lpad(floor(random() * 10 ^ count)::bigint::text, count, '0')
$$;

create function zip() returns text language sql as $$ select digits(4) || '11111' $$;

-- One row in ten contains ORIGINAL.
create function data(pool bytea) returns text language sql as $$
    select case when random() < 0.1 then overlay(
        letters(pool, 26, 50) placing 'ORIGINAL' from 1 + floor(random() * 18)::int
    ) else letters(pool, 26, 50) end
$$;

create procedure load_items(items int) language sql as $$
    insert into item
    select i, 1 + floor(random() * 10000), letters(pool, 14, 24),
        (100 + floor(random() * 9901)) / 100, data(pool)
    from generate_series(1, items) as i, letters
$$;

create procedure load_warehouse(w int, items int, customers int) language plpgsql as $$
begin
    insert into warehouse
    select w, letters(pool, 6, 10), letters(pool, 10, 20), letters(pool, 10, 20),
        letters(pool, 10, 20), letters(pool, 2, 2), zip(), floor(random() * 2001) / 10000,
        10 * customers * 10.00
    from letters;
    insert into stock
    select i, w, 10 + floor(random() * 91), letters(pool, 24, 24), letters(pool, 24, 24),
        letters(pool, 24, 24), letters(pool, 24, 24), letters(pool, 24, 24), letters(pool, 24, 24),
        letters(pool, 24, 24), letters(pool, 24, 24), letters(pool, 24, 24), letters(pool, 24, 24),
        0, 0, 0, data(pool)
    from generate_series(1, items) as i, letters;
    insert into district
    select d, w, letters(pool, 6, 10), letters(pool, 10, 20), letters(pool, 10, 20),
        letters(pool, 10, 20), letters(pool, 2, 2), zip(), floor(random() * 2001) / 10000,
        customers * 10.00, customers + 1
    from generate_series(1, 10) as d, letters;
    -- The first thousand have each name once, the others draw one.
    insert into customer
    select c, d, w, letters(pool, 8, 16), 'OE',
        tpcc_last_name(case when c <= 1000 then c - 1 else
            ((floor(random() * 256)::int | floor(random() * 1000)::int) + 123) % 1000 end),
        letters(pool, 10, 20), letters(pool, 10, 20), letters(pool, 10, 20), letters(pool, 2, 2),
        zip(), digits(16), localtimestamp, case when random() < 0.1 then 'BC' else 'GC' end,
        50000, floor(random() * 5001) / 10000, -10, 10, 1, 0, letters(pool, 300, 500)
    from generate_series(1, 10) as d, generate_series(1, customers) as c, letters;
    insert into history
    select c, d, w, d, w, localtimestamp, 10, letters(pool, 12, 24)
    from generate_series(1, 10) as d, generate_series(1, customers) as c, letters;
    -- Each customer has one order, in random order; seven in ten are delivered.
    insert into orders
    select o, d, w, c, localtimestamp,
        case when o <= customers * 7 / 10 then 1 + floor(random() * 10) end,
        5 + floor(random() * 11), 1
    from (
        select c, d, row_number() over (partition by d order by random()) as o
        from generate_series(1, 10) as d, generate_series(1, customers) as c
    ) as shuffled;
    insert into new_order select o_id, o_d_id, w from orders
    where o_w_id = w and o_carrier_id is null;
    insert into order_line
    select o_id, o_d_id, w, number, 1 + floor(random() * items), w,
        case when o_carrier_id is not null then o_entry_d end, 5,
        case when o_carrier_id is not null then 0 else (1 + floor(random() * 999999)) / 100 end,
        letters(pool, 24, 24)
    from orders, generate_series(1, o_ol_cnt) as number, letters
    where o_w_id = w;
end
$$;
