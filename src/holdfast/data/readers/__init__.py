"""Readers of published data sets in the layouts that their authors and the usual libraries give them.

Every module here that has ENTRIES is part of the catalogue (`holdfast.data.catalog`). A reader takes a `Tree`, a view
of a folder, an archive or a file, and makes a `Dataset`; it extracts nothing to disk and runs nothing that it reads.
"""
