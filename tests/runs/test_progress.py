"""What a person sees of a training, on a terminal and in a log file."""

import contextlib
import io
import logging
import re

import pytest
from small_training import break_off, resume_after, small_evaluator, small_trainer

from clnet.runs import progress
from clnet.runs.cost import Cost
from clnet.runs.progress import Progress, table


class Terminal(io.StringIO):
    """Keeps what is written, as a screen that never forgets."""

    def isatty(self):
        """So it says."""
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_READINGS", 0.0)
    return Terminal()


@pytest.fixture
def log_file():
    return io.StringIO()


def train(run_dir, stderr, resumed_after=0, seconds_to_train=0.0):
    evaluator = small_evaluator()
    handlers = [Cost(), Progress(run_dir, evaluator)]
    trainer = small_trainer(handlers, evaluator, seconds_to_train=seconds_to_train)
    if resumed_after:
        resume_after(trainer, resumed_after)
    with contextlib.redirect_stderr(stderr):
        trainer.run()
    return trainer


def test_a_terminal_has_one_bar_over_the_whole_run_with_losses_by_part(tmp_path, terminal):
    train(tmp_path, terminal, seconds_to_train=0.12)  # the bar is redrawn ten times a second at most
    drawn = terminal.getvalue().split("\r")
    bars = [text for text in drawn if "/12 [" in text]
    assert bars, "12 iterations in all"
    assert any(
        "epoch 2/3" in bar and "loss 15.000, detection_class 5.000, link_class 10.000, lr 1.0e+00" in bar
        for bar in bars
    ), "the readings of iteration 5"
    assert re.search(r"12/12 \[\d\d:\d\d<00:00", bars[-1]), "ends with nothing left to do"


def test_the_bar_of_a_resumed_run_begins_where_the_run_goes_on(tmp_path, terminal):
    train(tmp_path, terminal, resumed_after=2)
    first = next(text for text in terminal.getvalue().split("\r") if "/12 [" in text)
    assert "8/12 [" in first
    assert "epoch 3/3" in first


def test_a_log_file_has_a_line_for_every_epoch_and_no_bars(tmp_path, log_file):
    train(tmp_path, log_file)
    text = log_file.getvalue()
    assert "\r" not in text
    epochs = [line for line in text.splitlines() if line.startswith("epoch")]
    assert [line.split(":")[0] for line in epochs] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert "loss 19.500, detection_class 6.500, link_class 13.000, lr 1.0e+00" in epochs[1]
    assert epochs[2].endswith("0 s left")


def test_where_logging_is_set_up_lines_go_there(tmp_path, log_file, caplog):
    with caplog.at_level(logging.INFO):
        train(tmp_path, log_file)
    assert sum(record.getMessage().startswith("epoch") for record in caplog.records) == 3
    assert log_file.getvalue() == ""


def test_a_validation_is_a_table_that_tells_the_best(tmp_path, log_file):
    train(tmp_path, log_file)
    lines = log_file.getvalue().splitlines()
    second = lines.index("validation after epoch 2/3")
    assert lines[second + 1 : second + 3] == [
        "  mean_recall  0.7500  the best so far",
        "  recall@0.25  0.3750",
    ]
    third = lines.index("validation after epoch 3/3")
    assert lines[third + 1] == "  mean_recall  0.5000  best: 0.7500, epoch 2"


def test_the_end_tells_results_speed_waiting_and_memory(tmp_path, log_file):
    trainer = train(tmp_path, log_file)
    end = log_file.getvalue().split("trained to epoch 3/3 in ")[1].splitlines()
    cost = trainer.state.cost
    assert end[1:] == [
        f"  results         {tmp_path}",
        f"  training speed  {cost['pairs_per_second']:.1f} pairs/s",
        f"  data loading    {100 * cost['data_loading_share']:.1f}% of the training time",
        f"  peak memory     {cost['peak_memory_gb']:.2f} GB",
    ]


def test_an_error_is_raised_and_the_bar_is_left_as_it_is(tmp_path, terminal):
    trainer = small_trainer([Progress(tmp_path)])
    break_off(trainer, 6, RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"), contextlib.redirect_stderr(terminal):
        trainer.run()
    assert terminal.getvalue().endswith("\n"), "what follows begins on a line of its own"
    assert "trained to" not in terminal.getvalue()


def test_only_the_first_process_speaks(tmp_path, log_file):
    trainer = small_trainer([])
    trainer.state.rank = 1
    Progress(tmp_path).attach(trainer)
    with contextlib.redirect_stderr(log_file):
        trainer.run()
    assert log_file.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(40, "40 s"), (99, "99 s"), (720, "12 min"), (12600, "3.5 h")]
)
def test_durations_are_short_words(seconds, words):
    assert progress._duration(seconds) == words


def test_a_table_of_nothing_is_empty():
    assert table({}) == ""
