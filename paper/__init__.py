"""The tables of the paper that kofn began with, run again: what is run, how, the records, and the pages made of them.

Not a part of the installed library. From a clone, ``python -m paper llp --jobs 2`` runs a table.
"""
