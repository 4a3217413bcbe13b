"""Posts decisions to addresses that their projects' owners registered, signed, in order and at least once.

signing      the secret of each webhook, derived from the operator's key: none is stored
patience     how long a failing address is tried, and when again
delivering   what is due: claimed, posted through `egress`, and noted
"""
