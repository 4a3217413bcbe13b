"""What training runs used that they should not have, and where they are to go back to.

lineage     which updates a policy version descends from: arithmetic alone
reporting   a trainer's report of an update is kept
advising    a run is advised to go back to a checkpoint, once an incident
accounting  which trajectories, updates and versions are contaminated, by any choice of what is bad
"""

from inspector.contamination.accounting import Account, account
from inspector.contamination.advising import advise_due
from inspector.contamination.reporting import report

__all__ = ["Account", "account", "advise_due", "report"]
