"""The whole service as one process tree on one folder, on an embedded Postgres and Redis.

up            serves a folder until it is told to stop
└── stack     starts the parts in order and stops them in order
    ├── postgres, redis, services    what the children are
    ├── child                        runs one of them: start, start again, stop
    │   └── launch                   what happens between fork and exec
    ├── folder                       the data folder: lock, note of what runs, secrets
    ├── keeper                       ends what a dead stack left running
    ├── installation                 schema, first keys, login address
    └── ports, users, logs, processes
"""

from inspector.embedded.ports import Ports
from inspector.embedded.processes import CannotStart
from inspector.embedded.stack import Stack
from inspector.embedded.up import up

__all__ = ["CannotStart", "Ports", "Stack", "up"]
