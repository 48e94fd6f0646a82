-- What must hold of YCSB's table, each as the rows that violate it.

-- keys: a record for each key from 0 on
select count(*), min(ycsb_key), max(ycsb_key) from usertable
having count(*) <> max(ycsb_key) + 1 or min(ycsb_key) <> 0 or count(*) <> {records};

-- fields: every field has 100 bytes
select ycsb_key from usertable where octet_length(concat(field0, field1, field2, field3, field4))
    + octet_length(concat(field5, field6, field7, field8, field9)) <> 1000;
