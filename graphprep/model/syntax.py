"""The lock of Python's own parser: in Python 3.11 two threads that build syntax trees at once may end with SystemError."""

import threading

PARSER = threading.Lock()  # held while ``ast`` parses
