"""Convert public data sets and DICOM archives to datalists.

`registry` lists the data sets, `datasets` has one reader for each, and `convert` the steps they share.
"""
