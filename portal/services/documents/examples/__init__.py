"""Documents that show a new user what the portal does.

The texts in this folder were written for it and are in the public domain (CC0 1.0). Users load them
as their own private documents and remove them for good, with one click each.
"""
