"""The page docs/evidence/links_by_eye.md: links in breasts with several masses, judged by a person.

The judgements are those of docs/evidence/links_by_eye.json; see scripts/look_at_links.py.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from page_text import table

JUDGEMENTS = ("plausible", "wrong", "undecided")
UNSEEN = ("test", "validation")


def counts(content: Mapping[str, Any], sections: Iterable[str]) -> Counter[str]:
    """Breasts, links, and links by judgement, in these sections."""
    found = Counter[str]()
    for breast in content["breasts"]:
        if breast["section"] in sections:
            found["breasts"] += 1
            found["links"] += len(breast["links"])
            found.update(breast["links"])
    return found


def sentence(content: Mapping[str, Any]) -> str:
    """What was seen, in a sentence."""
    every, unseen = counts(content, (*UNSEEN, "training")), counts(content, UNSEEN)
    return (
        f"**And with several masses?** By eye, of {every['links']} links in {every['breasts']} such breasts "
        f"{every['plausible']} are plausible, {every['wrong']} wrong, and {every['undecided']} cannot be "
        f"decided; in the {unseen['breasts']} of these breasts that training has not seen, "
        f"{unseen['plausible']} of {unseen['links']} are plausible ([one by one](evidence/links_by_eye.md))."
    )


def by_eye_page(content: Mapping[str, Any]) -> list[str]:
    """The paragraphs of the page."""
    rows = []
    for name, sections in (("not seen in training", UNSEEN), ("seen in training", ("training",))):
        found = counts(content, sections)
        numbers = (found[what] for what in ("breasts", "links", *JUDGEMENTS))
        rows.append([name, *map(str, numbers)])
    one_by_one = [
        [breast["pair"], breast["section"], ", ".join(breast["links"]) or "no link"]
        for breast in content["breasts"]
    ]
    return [
        "# Links in breasts with several masses, by eye",
        "![What the film model links in breasts that training has not seen](../images/links_by_eye.jpg)",
        "*Breasts of the test and validation sections. Dashed white: masses, by the radiologists. Colours: "
        "what the film model finds in both views and links. CBIS-DDSM, Sawyer-Lee et al. 2016, CC BY 3.0, "
        "reduced.*",
        "CBIS-DDSM does not say which mass is which. So a person, who is no radiologist, looked at the links "
        "that `clnet predict` reports in 30 breasts with several masses in a view: by depth, size, order and "
        "looks, on films of 800 rows. *Wrong*: another partner fits clearly better, or one box is on "
        "no mass.",
        table(["breasts", "number", "links", *JUDGEMENTS], rows),
        table(["breast", "section", "judged"], one_by_one),
        "```bash\npython scripts/look_at_links.py output/cbis-ddsm\n```",
        "draws every breast, and lists the links in `links_by_eye.json`, where they are judged.",
    ]
