"""The queue: each step counts once, late images are never left out, nothing is lost when it is killed."""
# ruff: noqa: D102

from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from clnet.cli.main import main
from clnet.serve.ledger import Ledger, LedgerError


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    yield ledger
    ledger.close()


def receive(ledger, study="a", image="1", now=0.0, priority=0):
    return ledger.received(study, image, "SENDER", "MG", priority, now)


def analyse(ledger, study="a", images=1, destinations=("pacs",)):
    ledger.close_quiet(before=1e9)
    assert ledger.begin_analysis(study, images, again=0)
    assert ledger.analysed(study, images, 2, "", destinations, now=5)


def test_a_study_passes_all_states(ledger):
    receive(ledger, now=10)
    assert ledger.study("a").state == "receiving"
    assert ledger.close_quiet(before=9) == 0
    assert ledger.close_quiet(before=10) == 1
    assert ledger.begin_analysis("a", 1, again=30)
    assert ledger.study("a").state == "analysing"
    ledger.analysed("a", 1, 3, "", ["pacs"], now=20)
    (delivery,) = ledger.due_deliveries(now=20)
    ledger.delivered(delivery, now=21)
    study = ledger.study("a")
    assert (study.state, study.lesions, study.finished, study.attempts) == ("done", 3, 21, 1)


def test_a_clock_that_is_set_back_keeps_nothing_waiting(ledger):
    receive(ledger, study="a", now=1000)
    receive(ledger, study="b", now=5)
    ledger.set_back(now=10, latest=40)
    assert [ledger.study(name).received for name in "ab"] == [10, 5]
    assert ledger.close_quiet(before=10) == 2
    ledger.begin_analysis("a", 1, again=1030)
    assert ledger.due_analyses(now=40)[0].study_id == "b"
    ledger.set_back(now=12, latest=42)
    assert {study.study_id for study in ledger.due_analyses(now=42)} == {"a", "b"}
    ledger.analysed("a", 1, 0, "", ["pacs"], now=50)
    (delivery,) = ledger.due_deliveries(now=50)
    ledger.delivery_failed(delivery, "away", again=2000, now=50)
    ledger.set_back(now=20, latest=50)
    assert len(ledger.due_deliveries(now=50)) == 1


def test_without_destinations_an_analysed_study_is_done(ledger):
    receive(ledger)
    analyse(ledger, destinations=())
    assert ledger.study("a").state == "done"


def test_an_image_that_comes_again_changes_nothing(ledger):
    assert receive(ledger)
    analyse(ledger, destinations=())
    assert not receive(ledger)
    assert ledger.study("a").state == "done"


def test_an_image_during_the_analysis_makes_its_result_void(ledger):
    receive(ledger)
    ledger.close_quiet(before=1)
    ledger.begin_analysis("a", 1, again=0)
    receive(ledger, image="2")
    assert not ledger.analysed("a", 1, 0, "", ["pacs"], now=5)
    assert ledger.study("a").state == "receiving"
    analyse(ledger, images=2)
    assert [delivery.images for delivery in ledger.due_deliveries(now=9)] == [2]


def test_results_on_their_way_are_replaced_by_those_with_a_late_image(ledger):
    receive(ledger)
    analyse(ledger)
    (old,) = ledger.due_deliveries(now=9)
    receive(ledger, image="2")
    assert ledger.due_deliveries(now=9) == []
    ledger.delivered(old, now=9)  # it was being sent just then
    assert ledger.study("a").state == "receiving"
    analyse(ledger, images=2)
    assert ledger.sent_before("a", 2) == 1


def test_urgent_studies_go_first_then_those_that_wait_longest(ledger):
    receive(ledger, "late", "1", now=2)
    receive(ledger, "early", "2", now=1)
    receive(ledger, "urgent", "3", now=3, priority=1)
    ledger.close_quiet(before=9)
    assert [study.study_id for study in ledger.due_analyses(now=9)] == ["urgent", "early", "late"]


def test_an_analysis_that_was_killed_begins_again_after_a_while(ledger):
    receive(ledger)
    ledger.close_quiet(before=1)
    ledger.begin_analysis("a", 1, again=100)
    assert ledger.due_analyses(now=99) == []
    (study,) = ledger.due_analyses(now=100)
    assert (study.state, study.attempts) == ("analysing", 1)
    assert ledger.begin_analysis("a", 1, again=200)


def test_what_failed_waits_and_what_failed_for_good_says_why(ledger):
    receive(ledger)
    ledger.close_quiet(before=1)
    ledger.begin_analysis("a", 1, again=0)
    ledger.analysis_failed("a", 1, "no memory", again=100, now=5)
    assert ledger.due_analyses(now=99) == []
    (study,) = ledger.due_analyses(now=100)
    assert (study.attempts, study.reason) == (1, "no memory")
    ledger.begin_analysis("a", 1, again=0)
    ledger.analysis_failed("a", 1, "no memory", again=None, now=101)
    assert ledger.study("a").state == "failed"
    assert ledger.retry() == 1
    assert ledger.study("a").state == "complete"


def test_an_analysis_that_failed_by_no_fault_of_the_study_does_not_count(ledger):
    receive(ledger)
    ledger.close_quiet(before=1)
    ledger.begin_analysis("a", 1, again=0)
    ledger.analysis_failed("a", 1, "the disk is full", again=100, now=5, is_attempt=False)
    (study,) = ledger.due_analyses(now=100)
    assert (study.attempts, study.reason) == (0, "the disk is full")


def test_one_destination_that_fails_does_not_keep_results_from_the_other(ledger):
    receive(ledger)
    analyse(ledger, destinations=("bad", "good"))
    bad, good = ledger.due_deliveries(now=9)
    ledger.delivery_failed(bad, "HTTP 403", again=None, now=10)
    assert ledger.study("a").state == "sending"
    ledger.delivered(good, now=11)
    study = ledger.study("a")
    assert (study.state, study.reason) == ("failed", "bad: HTTP 403")
    assert ledger.retry("a") == 1
    assert [delivery.destination for delivery in ledger.due_deliveries(now=12)] == ["bad"]
    ledger.delivered(ledger.due_deliveries(now=12)[0], now=13)
    assert ledger.study("a").state == "done"


def test_only_finished_studies_are_forgotten_and_then_completely(ledger):
    receive(ledger)
    assert not ledger.forget("a", 1)
    analyse(ledger, destinations=())
    assert not ledger.forget("a", 2)
    assert ledger.forget("a", 1)
    assert not ledger.has_image("a", "1")
    assert receive(ledger)


def test_commits_are_synced_to_disk(ledger, tmp_path):
    with ledger._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL, in SQLite's manual


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "queue.sqlite").write_text("not a database, but a longer text" * 100)
    with pytest.raises(LedgerError, match=r"queue\.sqlite.*not a database"):
        Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")


STUDY = st.sampled_from(["a", "b"])


class Node(RuleBasedStateMachine):
    """Any order of arrivals, steps, failures and restarts; compared with what must not get lost."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.ledger = self.opened()
        self.images = {"a": set(), "b": set()}
        self.analysing = {}  # study: number of images when it began
        self.delivered = {"a": [], "b": []}

    def opened(self):
        return Ledger(f"sqlite:///{self.folder.name}/queue.sqlite")

    @rule(study=STUDY, image=st.integers(0, 4))
    def receive(self, study, image):
        new = self.ledger.received(study, f"{study}{image}", "S", "MG", 0, 0)
        assert new == (image not in self.images[study])
        self.images[study].add(image)

    @rule()
    def become_quiet(self):
        self.ledger.close_quiet(before=0)

    @rule(study=STUDY)
    def begin(self, study):
        for due in self.ledger.due_analyses(now=1):
            if due.study_id == study and self.ledger.begin_analysis(study, due.images, again=0):
                self.analysing[study] = due.images

    @rule(study=STUDY, fails=st.booleans(), for_good=st.booleans())
    def end(self, study, fails, for_good):
        images = self.analysing.pop(study, None)
        if images is None:
            return
        if fails:
            self.ledger.analysis_failed(study, images, "reason", None if for_good else 0, now=1)
        else:
            counts = self.ledger.analysed(study, images, 0, "", ["x", "y"], now=1)
            assert counts == (images == len(self.images[study]))

    @rule(fails=st.booleans(), for_good=st.booleans(), killed=st.booleans())
    def send(self, fails, for_good, killed):
        for delivery in self.ledger.due_deliveries(now=1, limit=1):
            if fails:
                self.ledger.delivery_failed(delivery, "reason", None if for_good else 0, now=1)
            else:
                self.delivered[delivery.study_id].append((delivery.images, delivery.destination))
                if not killed:
                    self.ledger.delivered(delivery, now=1)

    @rule()
    def retry(self):
        self.ledger.retry()

    @rule()
    def restart(self):
        self.ledger.close()
        self.ledger = self.opened()
        self.analysing.clear()

    @invariant()
    def nothing_is_lost(self):
        for study, images in self.images.items():
            known = self.ledger.study(study)
            assert (known is None) == (not images)
            if known is None:
                continue
            assert known.images == len(images)
            if known.state == "done":  # then all of it has arrived, with all images
                assert {(len(images), "x"), (len(images), "y")} <= set(self.delivered[study])

    def teardown(self):
        """From any state, quiet, steps that succeed and retries lead to done."""
        ledger = self.ledger
        ledger.retry()
        ledger.close_quiet(before=0)
        for study in ledger.due_analyses(now=1):
            ledger.begin_analysis(study.study_id, study.images, again=0)
            ledger.analysed(study.study_id, study.images, 0, "", ["x"], now=1)
        for delivery in ledger.due_deliveries(now=1):
            ledger.delivered(delivery, now=1)
        ledger.settle(now=1)
        counts = ledger.counts()
        ledger.close()
        self.folder.cleanup()
        assert counts["done"] == sum(counts.values())


Node.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestNode = pytest.mark.slow(Node.TestCase)


def test_a_study_is_named_for_retry_alone_and_must_be_one_that_failed(tmp_path, capsys):
    file = tmp_path / "serve.yaml"
    file.write_text(f"folder: {tmp_path}\n")
    assert main(["serve", "retry", "0123456789abcdef", "--config", str(file)]) == 1
    assert "tried again: 0" in capsys.readouterr().out
    assert main(["serve", "retry", "--config", str(file)]) == 0
    assert main(["serve", "status", "0123456789abcdef", "--config", str(file)]) == 2
    assert "only retry does" in capsys.readouterr().err
