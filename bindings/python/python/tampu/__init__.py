"""Tampu for Python: logs of an observatory's programs.

``tampu.logging`` hands the records of Python's own ``logging`` to the observatory's log.
"""

from ._native import TampuError

__all__ = ["TampuError"]
__version__ = "0.1.0"
