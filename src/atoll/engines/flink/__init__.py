"""Apache Flink: programs whose operators are placed from outside."""
