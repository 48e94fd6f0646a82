-- A bookshop in the manner of TPC-W, without its images: 20,000 items, 120,000 lines of orders.
create table author (id int primary key, name text not null);

insert into author select id, 'author ' || (id * 7919 % 5000)
from generate_series(1, 5000) as id;

create table item (
    id int primary key, title text not null, author int not null, subject int not null,
    published int not null, price numeric(8, 2) not null, stock int not null
) with (fillfactor = 80);

insert into item
select id, 'title ' || md5(id::text), 1 + id * 31 % 5000, id * 17 % 24, id * 101 % 3650,
    5 + id * 13 % 9500 / 100.0, 10 + id % 90
from generate_series(1, 20000) as id;

create table customer (
    id int primary key, name text not null, country int not null, visits int not null
) with (fillfactor = 80);

insert into customer select id, 'user' || id, id * 29 % 92, 0 from generate_series(1, 20000) as id;

create table orders (id int primary key, customer int not null, day int not null);

insert into orders select id, 1 + id * 7919 % 20000, id / 30
from generate_series(1, 30000) as id;

create table order_line (
    orders int not null, line int not null, item int not null, quantity int not null,
    primary key (orders, line)
);

insert into order_line
select 1 + id / 4, id % 4, 1 + id * 10007 % 20000, 1 + id % 5
from generate_series(0, 119999) as id;

create table cart (item int not null, quantity int not null);

create index on item (subject, published);

create index on item (author);

create index on customer (name);

create index on orders (customer);

create index on order_line (item)
