-- YCSB's table: a key and ten fields of 100 bytes. The first 10 of a field count its changes, so
-- that a change must read it, and a lost one can be found. Unlogged while it is loaded.

create unlogged table usertable (
    ycsb_key bigint,
    field0 text, field1 text, field2 text, field3 text, field4 text,
    field5 text, field6 text, field7 text, field8 text, field9 text
);

create function ycsb_next(field text) returns text language sql as $$
    select to_char(left(field, 10)::bigint + 1, 'FM0000000000') || right(field, 60)
        || substr(field, 11, 30)
$$;

-- Read the record, change one field of it, write it.
create function ycsb_change(wanted bigint, number int) returns usertable language plpgsql as $$
declare
    record usertable;
begin
    select * into strict record from usertable where ycsb_key = wanted for update;
    case number
        when 0 then record.field0 := ycsb_next(record.field0);
        when 1 then record.field1 := ycsb_next(record.field1);
        when 2 then record.field2 := ycsb_next(record.field2);
        when 3 then record.field3 := ycsb_next(record.field3);
        when 4 then record.field4 := ycsb_next(record.field4);
        when 5 then record.field5 := ycsb_next(record.field5);
        when 6 then record.field6 := ycsb_next(record.field6);
        when 7 then record.field7 := ycsb_next(record.field7);
        when 8 then record.field8 := ycsb_next(record.field8);
        when 9 then record.field9 := ycsb_next(record.field9);
    end case;
    update usertable set
        field0 = record.field0, field1 = record.field1, field2 = record.field2,
        field3 = record.field3, field4 = record.field4, field5 = record.field5,
        field6 = record.field6, field7 = record.field7, field8 = record.field8,
        field9 = record.field9
    where ycsb_key = wanted;
    return record;
end
$$;
