"""The four checks for the product: ordinary checks of a stranger, each over a whole batch at once."""
