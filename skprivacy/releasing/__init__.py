"""`Fitted` in, rows out: X replaced by Y, and read back."""
