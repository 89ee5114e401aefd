"""Any table, as columns: their types and roles, and counts of rows."""
