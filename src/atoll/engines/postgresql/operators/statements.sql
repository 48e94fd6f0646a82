-- item: 40
select * from item where id = (select 1 + floor(random() * 20000)::int);
-- item-with-author: 30
select i.title, a.name from item i join author a on a.id = i.author
where i.id = (select 1 + floor(random() * 20000)::int);
-- customer-by-name: 30
select * from customer where name = (select 'user' || (1 + floor(random() * 20000)::int));
-- new-products: 10
select i.id, i.title, a.name from item i join author a on a.id = i.author
where i.subject = (select floor(random() * 24)::int) order by i.published desc, i.title limit 50;
-- best-sellers: 2
select l.item, sum(l.quantity) as sold from order_line l join orders o on o.id = l.orders
where o.day > 800 group by l.item order by sold desc, l.item limit 50;
-- best-sellers-of-subject: 2
select l.item, sum(l.quantity) as sold from order_line l join item i on i.id = l.item
where i.subject = (select floor(random() * 24)::int) group by l.item order by sold desc limit 50;
-- search-title: 4
select id, title from item where title like (select '%' || left(md5(random()::text), 4) || '%')
order by title limit 50;
-- search-author: 5
select i.id, i.title from author a join item i on i.author = a.id
where a.name like (select '%' || floor(random() * 500)::int || '%') order by i.title limit 50;
-- search-subject: 10
select id, title from item where subject = (select floor(random() * 24)::int)
order by title limit 50;
-- related: 5
select other.item, count(*) as together from order_line mine
join order_line other on other.orders = mine.orders and other.item <> mine.item
where mine.item = (select 1 + floor(random() * 20000)::int)
group by other.item order by together desc limit 5;
-- orders-of-customer: 20
select o.id, o.day, count(l.line) from orders o join order_line l on l.orders = o.id
where o.customer = (select 1 + floor(random() * 20000)::int) group by o.id, o.day order by o.day;
-- lines-of-order: 30
select l.line, i.title, l.quantity * i.price from order_line l join item i on i.id = l.item
where l.orders = (select 1 + floor(random() * 30000)::int);
-- revenue-by-subject: 1
select i.subject, sum(l.quantity * i.price) from order_line l join item i on i.id = l.item
group by i.subject;
-- revenue-by-day: 1
select o.day / 7, count(*), sum(l.quantity) from orders o join order_line l on l.orders = o.id
group by o.day / 7 order by 1;
-- top-customers: 1
select o.customer, sum(l.quantity) as bought from orders o join order_line l on l.orders = o.id
group by o.customer order by bought desc limit 20;
-- countries: 2
select country, count(*), sum(visits) from customer group by country order by country;
-- low-stock: 4
select subject, count(*) from item where stock < 20 group by subject;
-- price-histogram: 2
select width_bucket(price, 0, 100, 20), count(*), avg(price) from item group by 1 order by 1;
-- median-price: 1
select subject, percentile_cont(0.5) within group (order by price) from item group by subject;
-- cart-total: 20
select count(*), sum(c.quantity * i.price) from cart c join item i on i.id = c.item;
-- add-to-cart: 10
insert into cart select 1 + floor(random() * 20000)::int, 1;
-- empty-cart: 1
delete from cart;
-- visit: 20
update customer set visits = visits + 1 where id = (select 1 + floor(random() * 20000)::int);
-- sell: 20
update item set stock = case when stock > 0 then stock - 1 else 99 end
where id = (select 1 + floor(random() * 20000)::int)
