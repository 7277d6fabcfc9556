"""Which evaluator is asked about which rows of the node table, and what one request comes to."""
