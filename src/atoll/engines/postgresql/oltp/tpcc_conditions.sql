-- The consistency conditions of TPC-C (clause 3.3.2), each as the rows that violate it. Condition
-- 11 is of the initial rows; here it counts what has been delivered since.

-- 1: a warehouse's W_YTD is the sum of its districts' D_YTD
select w_id, w_ytd, sum(d_ytd) from warehouse join district on d_w_id = w_id
group by w_id, w_ytd having w_ytd <> sum(d_ytd);

-- 2: a district's D_NEXT_O_ID - 1 is its highest order, and its highest new order
select d_w_id, d_id, d_next_o_id, highest, highest_new from district
left join (select o_w_id, o_d_id, max(o_id) as highest from orders group by 1, 2) as o
    on o_w_id = d_w_id and o_d_id = d_id
left join (select no_w_id, no_d_id, max(no_o_id) as highest_new from new_order group by 1, 2) as n
    on no_w_id = d_w_id and no_d_id = d_id
where d_next_o_id - 1 is distinct from highest or highest_new <> highest;

-- 3: a district's new orders have no gap
select no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) from new_order
group by 1, 2 having max(no_o_id) - min(no_o_id) + 1 <> count(*);

-- 4: a district's orders name as many lines as there are
select coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), named, there
from (select o_w_id, o_d_id, sum(o_ol_cnt) as named from orders group by 1, 2) as o
full join (select ol_w_id, ol_d_id, count(*) as there from order_line group by 1, 2) as l
    on o_w_id = ol_w_id and o_d_id = ol_d_id
where named is distinct from there;

-- 5: an order has no carrier if and only if it is a new order
select o_w_id, o_d_id, o_id, o_carrier_id, no_o_id from orders
full join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id
where o_id is null or (o_carrier_id is null) <> (no_o_id is not null);

-- 6: an order names as many lines as it has
select o_w_id, o_d_id, o_id, o_ol_cnt, there from orders
full join (
    select ol_w_id, ol_d_id, ol_o_id, count(*) as there from order_line group by 1, 2, 3
) as l on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
where o_ol_cnt is distinct from there;

-- 7: a line has no delivery date if and only if its order has no carrier
select ol_w_id, ol_d_id, ol_o_id, ol_number from order_line
left join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id
where o_id is null or (ol_delivery_d is null) <> (o_carrier_id is null);

-- 8: a warehouse's W_YTD is the sum of its history
select w_id, w_ytd, sum(h_amount) from warehouse left join history on h_w_id = w_id
group by w_id, w_ytd having w_ytd is distinct from sum(h_amount);

-- 9: a district's D_YTD is the sum of its history
select d_w_id, d_id, d_ytd, sum(h_amount) from district
left join history on h_w_id = d_w_id and h_d_id = d_id
group by d_w_id, d_id, d_ytd having d_ytd is distinct from sum(h_amount);

-- 10: a customer's balance is what was delivered less what was paid
select c_w_id, c_d_id, c_id, c_balance, bought, paid from customer
left join (
    select o_w_id, o_d_id, o_c_id, sum(ol_amount) as bought from orders
    join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    where ol_delivery_d is not null group by 1, 2, 3
) as b on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id
left join (
    select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from history group by 1, 2, 3
) as p on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id
where c_balance <> coalesce(bought, 0) - coalesce(paid, 0);

-- 11: a district's orders less its new orders are those delivered, at first and since
select d_w_id, d_id, loaded, delivered, here, new from district
join (
    select c_w_id, c_d_id, count(*) * 7 / 10 as loaded, sum(c_delivery_cnt) as delivered
    from customer group by 1, 2
) as c on c_w_id = d_w_id and c_d_id = d_id
join (select o_w_id, o_d_id, count(*) as here from orders group by 1, 2) as o
    on o_w_id = d_w_id and o_d_id = d_id
left join (select no_w_id, no_d_id, count(*) as new from new_order group by 1, 2) as n
    on no_w_id = d_w_id and no_d_id = d_id
where here - coalesce(new, 0) <> loaded + delivered;

-- 12: a customer's balance and payments are what was delivered
select c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, bought from customer
left join (
    select o_w_id, o_d_id, o_c_id, sum(ol_amount) as bought from orders
    join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    where ol_delivery_d is not null group by 1, 2, 3
) as b on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id
where c_balance + c_ytd_payment <> coalesce(bought, 0);
