"""The folder of a run: new, resumed, or whichever of the two it has to be."""

import pytest

from clnet.runs.run_folder import RunError, run_folder


def test_a_new_run_never_gets_the_folder_of_another(tmp_path):
    assert run_folder(tmp_path, "run") == str(tmp_path / "run")
    assert run_folder(tmp_path, "run") == str(tmp_path / "run-2")


def test_only_a_run_with_a_checkpoint_is_resumed(tmp_path):
    folder = run_folder(tmp_path, "run")
    with pytest.raises(RunError, match=r"no checkpoint .*last\.pt"):
        run_folder(tmp_path, "run", resume=True)
    (tmp_path / "run" / "last.pt").touch()
    assert run_folder(tmp_path, "run", resume=True) == folder


def test_auto_begins_a_run_and_returns_to_it_with_or_without_a_checkpoint(tmp_path):
    folder = run_folder(tmp_path, "run", resume="auto")
    assert run_folder(tmp_path, "run", resume="auto") == folder == str(tmp_path / "run")
    (tmp_path / "run" / "last.pt").touch()
    assert run_folder(tmp_path, "run", resume="auto") == folder
