"""The DICOM node: takes studies, analyses each when it is complete, and sends the results on.

See docs/serve.md.
"""
