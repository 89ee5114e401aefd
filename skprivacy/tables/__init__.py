"""Any table, as columns: the type of each, its role, and counts of its rows."""
