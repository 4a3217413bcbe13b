"""Audits files in one process, with no server and no database: the engine, the checks and the policy of the service.

auditing         two passes over the files, then the judgement
├── sources      opens what may hold trajectories, and lists what cannot be read
├── survey       the first pass: what history must know before any check runs
├── reasoning    takes the agent's reasoning out
├── declared     what owners say of their environments, from files
├── usual        what is ordinary, learnt from files
├── spool        what the checks said, on disk until everything was inspected
└── report       what is said of one trajectory
"""

from inspector.local.auditing import Audit, Plan, audit
from inspector.local.declared import BadDeclaration, Declared
from inspector.local.report import Report
from inspector.local.usual import TooFew, Usual

__all__ = ["Audit", "BadDeclaration", "Declared", "Plan", "Report", "TooFew", "Usual", "audit"]
