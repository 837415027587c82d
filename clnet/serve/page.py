"""The status page: the queue, the last studies, failures with their reasons. It names nobody."""

from datetime import datetime
from html import escape

from clnet.serve.ledger import Ledger, Study
from clnet.serve.spool import Spool

SHOWN = 50
_STYLE = """body{font:15px system-ui,sans-serif;margin:2em auto;max-width:70em;color:#223}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.35em .7em;border-bottom:1px solid #dde}
.counts td{font-size:1.6em;border:0}.counts th{border:0;font-weight:normal;color:#667}.failed{color:#b00}
code{font-size:13px}form{margin:0;display:inline}img{max-width:100%}"""


def status_page(ledger: Ledger, spool: Spool) -> str:
    """The page as HTML."""
    counts = ledger.counts()
    failed = ledger.last_studies(SHOWN, "failed")
    numbers = "".join(
        f"<td class={state if number else 'none'}>{number}</td>" for state, number in counts.items()
    )
    names = "".join(f"<th>{state}</th>" for state in counts)
    return _page(
        "clnet serve",
        f"<h1>clnet serve</h1><table class=counts><tr>{numbers}</tr><tr>{names}</tr></table>"
        f"<h2>Failed</h2>{_table(failed, spool, can_retry=True) if failed else '<p>None.</p>'}"
        f"<h2>Last studies</h2>{_table(ledger.last_studies(SHOWN), spool)}",
        refresh=True,
    )


def pictures_page(study_id: str, breasts: list[str]) -> str:
    """The pictures of a study's breasts."""
    pictures = "".join(
        f'<p><img src="/status/{study_id}/{breast}.png" alt="breast {breast} with its findings"></p>'
        for breast in breasts
    )
    return _page(study_id, f"<h1>Study {study_id}</h1><p><a href=/status>Back</a></p>{pictures}")


def _table(studies: list[Study], spool: Spool, can_retry: bool = False) -> str:
    head = "<tr><th>study<th>state<th>images<th>masses<th>last image<th>note<th></tr>"
    return f"<table>{head}{''.join(_row(study, spool, can_retry) for study in studies)}</table>"


def _row(study: Study, spool: Spool, can_retry: bool) -> str:
    received = datetime.fromtimestamp(study.received).strftime("%Y-%m-%d %H:%M:%S")
    retry = f"<form method=post action=/status/{study.study_id}/retry><button>Retry</button></form>"
    has_pictures = (spool.results_of(study.study_id, study.images) / "breasts").is_dir()
    look = f"<a href=/status/{study.study_id}>Picture</a>" if has_pictures else ""
    lesions = str(study.lesions) if study.state in ("sending", "done") else ""
    return (
        f"<tr><td><code>{study.study_id}</code><td class={study.state}>{study.state}<td>{study.images}"
        f"<td>{lesions}<td>{received}<td>{escape(study.reason)}<td>{retry if can_retry else look}</tr>"
    )


def _page(title: str, body: str, refresh: bool = False) -> str:
    again = "<meta http-equiv=refresh content=5>" if refresh else ""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>{again}<title>{title}</title>"
        f"<style>{_STYLE}</style>{body}</html>"
    )
