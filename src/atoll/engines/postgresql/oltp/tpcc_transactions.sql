-- The five transactions of TPC-C (revision 5.11, clauses 2.4 to 2.8), under READ COMMITTED.
--
-- What could be lost by that is locked. All transactions lock rows in one order (warehouse,
-- district, new order, customer; stock by its key), so that they never wait in a circle.

create function tpcc_last_name(number int) returns text language sql immutable as $$
    select name[number / 100 + 1] || name[number / 10 % 10 + 1] || name[number % 10 + 1]
    from (
        values (array['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
    ) as syllables (name)
$$;

-- 2.4. Draws 5 to 15 lines: uniform items, 1 % of them from another warehouse. 1 % of the orders
-- name an item that does not exist and are rolled back: those have no total.
create procedure tpcc_new_order(
    w int, d int, c int, warehouses int, items int, inout total numeric
) language plpgsql as $$
declare
    number_of_lines int := 5 + floor(random() * 11)::int;
    is_wrong boolean := random() < 0.01;
    item_ids int[];
    suppliers int[];
    taxes numeric;
    district_tax numeric;
    discount numeric;
    o int;
    wanted int;
    price numeric;
    amount numeric;
    dist_info char(24);
begin
    -- In the order of stock's key, so that two orders never wait for each other's stock.
    select array_agg(drawn_item order by drawn_supplier, drawn_item),
        array_agg(drawn_supplier order by drawn_supplier, drawn_item)
    into item_ids, suppliers
    from (
        select 1 + floor(random() * items)::int as drawn_item,
            case when warehouses > 1 and random() < 0.01
                then 1 + (w + floor(random() * (warehouses - 1))::int) % warehouses else w
            end as drawn_supplier
        from generate_series(1, number_of_lines)
    ) as drawn;
    if is_wrong then
        item_ids[number_of_lines] := items + 1;
    end if;
    select w_tax into strict taxes from warehouse where w_id = w;
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = w and d_id = d
    returning d_next_o_id - 1, d_tax into strict o, district_tax;
    select c_discount into strict discount
    from customer where c_w_id = w and c_d_id = d and c_id = c;
    insert into orders
    values (o, d, w, c, localtimestamp, null, number_of_lines, (w = all (suppliers))::int);
    insert into new_order values (o, d, w);
    total := 0;
    for number in 1 .. number_of_lines loop
        select i_price into price from item where i_id = item_ids[number];
        if not found then
            rollback;
            total := null;
            return;
        end if;
        wanted := 1 + floor(random() * 10)::int;
        update stock set
            s_quantity = s_quantity - wanted + case when s_quantity >= wanted + 10 then 0 else 91 end,
            s_ytd = s_ytd + wanted,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (s_w_id <> w)::int
        where s_w_id = suppliers[number] and s_i_id = item_ids[number]
        returning case d
            when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03
            when 4 then s_dist_04 when 5 then s_dist_05 when 6 then s_dist_06
            when 7 then s_dist_07 when 8 then s_dist_08 when 9 then s_dist_09
            else s_dist_10 end
        into strict dist_info;
        amount := wanted * price;
        insert into order_line values (
            o, d, w, number, item_ids[number], suppliers[number], null, wanted, amount, dist_info
        );
        total := total + amount;
    end loop;
    total := total * (1 - discount) * (1 + taxes + district_tax);
end
$$;

-- The customer with that number; with number 0 the middle one of that last name (2.5.2.2, 2.6.2.2).
create function tpcc_customer(w int, d int, c int, last_name int) returns int
language plpgsql stable as $$
declare
    found_c int := c;
begin
    if c = 0 then
        select (array_agg(c_id order by c_first))[(count(*) + 1) / 2] into strict found_c
        from customer where c_w_id = w and c_d_id = d and c_last = tpcc_last_name(last_name);
    end if;
    return found_c;
end
$$;

-- 2.5. Of the customer of warehouse cw and district cd; returns the new balance.
create function tpcc_payment(
    w int, d int, cw int, cd int, c int, last_name int, amount numeric
) returns numeric language plpgsql as $$
declare
    paying int := tpcc_customer(cw, cd, c, last_name);
    warehouse_name text;
    district_name text;
    balance numeric;
begin
    update warehouse set w_ytd = w_ytd + amount where w_id = w
    returning w_name into strict warehouse_name;
    update district set d_ytd = d_ytd + amount where d_w_id = w and d_id = d
    returning d_name into strict district_name;
    update customer set
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = case c_credit
            when 'BC' then left(concat_ws(' ', c_id, cd, cw, d, w, amount, c_data), 500)
            else c_data end
    where c_w_id = cw and c_d_id = cd and c_id = paying
    returning c_balance into strict balance;
    insert into history values (
        paying, cd, cw, d, w, localtimestamp, amount,
        warehouse_name || '    ' || district_name
    );
    return balance;
end
$$;

-- 2.6. The lines of the customer's last order.
create function tpcc_order_status(w int, d int, c int, last_name int)
returns setof order_line language plpgsql stable as $$
declare
    asking int := tpcc_customer(w, d, c, last_name);
begin
    perform c_balance, c_first, c_middle, c_last
    from customer where c_w_id = w and c_d_id = d and c_id = asking;
    return query select * from order_line where ol_w_id = w and ol_d_id = d and ol_o_id = (
        select o_id from orders where o_w_id = w and o_d_id = d and o_c_id = asking
        order by o_id desc limit 1
    );
end
$$;

-- 2.7. The oldest new order of each district; returns how many there were. One delivery waits for
-- another at the first district: to skip what is locked would leave a gap if the other ends.
create function tpcc_delivery(w int, carrier int) returns int language plpgsql as $$
declare
    o int;
    buyer int;
    owed numeric;
    delivered int := 0;
begin
    for d in 1 .. 10 loop
        select no_o_id into o from new_order where no_w_id = w and no_d_id = d
        order by no_o_id limit 1 for update;
        continue when not found;
        delete from new_order where no_w_id = w and no_d_id = d and no_o_id = o;
        update orders set o_carrier_id = carrier where o_w_id = w and o_d_id = d and o_id = o
        returning o_c_id into strict buyer;
        with lines as (
            update order_line set ol_delivery_d = localtimestamp
            where ol_w_id = w and ol_d_id = d and ol_o_id = o returning ol_amount
        )
        select sum(ol_amount) into strict owed from lines;
        update customer set c_balance = c_balance + owed, c_delivery_cnt = c_delivery_cnt + 1
        where c_w_id = w and c_d_id = d and c_id = buyer;
        delivered := delivered + 1;
    end loop;
    return delivered;
end
$$;

-- 2.8. How many items of the last 20 orders have a stock below the threshold.
create function tpcc_stock_level(w int, d int, threshold int) returns bigint
language sql stable as $$
    select count(distinct s_i_id)
    from district
    join order_line on ol_w_id = d_w_id and ol_d_id = d_id
        and ol_o_id >= d_next_o_id - 20 and ol_o_id < d_next_o_id
    join stock on s_w_id = w and s_i_id = ol_i_id and s_quantity < threshold
    where d_w_id = w and d_id = d
$$;
