"""The bundle as a function: from files to findings, one breast or a whole folder."""
