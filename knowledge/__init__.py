"""What things are and every decision about them. No Prefect, DuckDB, Arrow or Delta."""
