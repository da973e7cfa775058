"""Several processes behind one port: a supervisor that has the ledger, and workers that answer from memory.

Workers are replicas in all that matters: the same leases, the same barrier. What differs is the server that
they share: it is the supervisor, and dies with nobody left behind.
"""
