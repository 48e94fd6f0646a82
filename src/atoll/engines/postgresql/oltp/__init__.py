"""YCSB and TPC-C on PostgreSQL: tables, transactions and conditions in SQL, driven by pgbench.

All of it is written from the texts of the benchmarks: TPC-C Standard Specification 5.11, and
Cooper and others, Benchmarking Cloud Serving Systems with YCSB, SoCC 2010.
"""
