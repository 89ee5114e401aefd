"""Release rows with a `Fitted`: X replaced by Y, and read back."""
