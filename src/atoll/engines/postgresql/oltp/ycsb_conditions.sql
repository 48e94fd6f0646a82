-- What must hold of YCSB's table, each as the rows that violate it.

-- keys: a record for each key from 0 on
select count(*), min(ycsb_key), max(ycsb_key) from usertable
having count(*) <> max(ycsb_key) + 1 or min(ycsb_key) <> 0 or count(*) <> {records};

-- fields: every field has 100 bytes
select ycsb_key from usertable where array[
    octet_length(field0), octet_length(field1), octet_length(field2), octet_length(field3),
    octet_length(field4), octet_length(field5), octet_length(field6), octet_length(field7),
    octet_length(field8), octet_length(field9)
] is distinct from array_fill(100, array[10]);
