"""One reader per data set: from the files as downloaded to annotated views."""
