"""A page on one's own machine: open a table, move a slider, look, release."""
