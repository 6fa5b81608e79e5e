"""Tampu for Python: logs, events, bulk data and the logbook of an observatory's programs.

``tampu.logging`` hands the records of Python's own ``logging`` to the observatory's log. ``tampu.event`` publishes the
values of attributes, and follows those of others.
``tampu.bulk`` sends and receives large data, and ``tampu.book`` writes and searches the logbook.
"""

from ._native import TampuError

__all__ = ["TampuError"]
__version__ = "0.1.0"
