"""Pictures of a report: an image, or an HTML page by itself.

In: a report, and the name of a file. Out: its bytes. Only ``draw`` knows matplotlib, which the extra ``plots`` installs.
"""
