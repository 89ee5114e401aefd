"""Any table, as columns: what each is of, what it is for, and rows counted."""
