"""The engine `spark`: Spark SQL, a standalone cluster."""
