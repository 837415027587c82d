"""docs/dicom.md says what the code reads and writes."""

import re

from describe_dicom import READ, page
from page_commands import ROOT
from pydicom.datadict import tag_for_keyword

from clnet.data.header import KEYWORDS

READERS = ("decode", "header", "pixels", "views")


def test_the_page_is_up_to_date():
    written = (ROOT / "docs" / "dicom.md").read_text(encoding="utf-8")
    assert written == page(), "run python scripts/describe_dicom.py > docs/dicom.md"


def test_every_attribute_that_is_read_is_on_the_page():
    on_page = {keyword for keywords in READ.values() for keyword in keywords}
    assert on_page >= set(KEYWORDS)
    for name in READERS:
        source = (ROOT / "clnet" / "data" / f"{name}.py").read_text(encoding="utf-8")
        words = set(re.findall(r"\"([A-Z]\w+)\"|dataset\.([A-Z]\w+)", source))
        read = {word for pair in words for word in pair if word and tag_for_keyword(word)}
        assert read <= on_page, (name, read - on_page)
