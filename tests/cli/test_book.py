"""`python -m minimx book`: the chapters are copied, and what a reader has is left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from minimx import __main__ as command
from minimx.cli import book

CHAPTERS = Path(__file__).parents[2] / "book" / "chapters"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["minimx", "book", *arguments])
    return command.main()


def test_chapters_are_copied_and_never_over_the_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = sorted(path.name for path in CHAPTERS.glob("*.ipynb"))
    folder = tmp_path / "mine"
    assert run(monkeypatch, str(folder), "--no-open") == 0
    assert capsys.readouterr().out == f"copied {len(names)} files into {folder}\n"
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / names[0]).read_bytes() == (CHAPTERS / names[0]).read_bytes()
    (folder / names[0]).write_text("my notes")
    (folder / names[1]).unlink()
    assert run(monkeypatch, str(folder), "--no-open") == 0
    kept = f"kept {folder / names[0]}: it differs from the copy that comes with minimx; rename it to get that one\n"
    assert capsys.readouterr().out == f"copied 1 file into {folder}\n{kept}"
    assert (folder / names[0]).read_text() == "my notes"
    assert run(monkeypatch, str(folder), "--no-open") == 0
    assert capsys.readouterr().out.startswith("nothing to copy")


def test_what_is_for_teachers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, str(tmp_path), "--no-open", "--teaching") == 0
    assert (tmp_path / "teaching" / "assignment" / "submissions" / "solution.py").is_file()
    assert not list(tmp_path.rglob("__pycache__"))


def test_jupyterlab_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in takes its place: it leaves behind with what it was started."""
    stand_in = tmp_path / "packages" / "jupyterlab.py"
    stand_in.parent.mkdir()
    stand_in.write_text("import sys, pathlib; pathlib.Path(sys.argv[1], 'started').touch(); sys.exit(3)")
    monkeypatch.setenv("PYTHONPATH", str(stand_in.parent))
    monkeypatch.setattr(book.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(book, "sources", lambda place, teaching: ())
    (tmp_path / "mine").mkdir()
    assert run(monkeypatch, str(tmp_path / "mine")) == 3
    assert (tmp_path / "mine" / "started").exists()


def test_without_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(book.importlib.util, "find_spec", lambda name: None if name == "jupyterlab" else name)
    assert run(monkeypatch, str(tmp_path / "my book")) == 1
    said = capsys.readouterr()
    assert "copied" in said.out
    assert "JupyterLab is not installed beside this Python" in said.err
    assert f"-m jupyterlab '{tmp_path / 'my book'}'" in said.err


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, str(tmp_path / "file"), "--no-open") == 1
    assert f"minimx book: {tmp_path / 'file'} cannot be written to: File exists; name another folder" in capsys.readouterr().err
    monkeypatch.setattr(book, "PLACES", [tmp_path / "nowhere"])
    assert run(monkeypatch, str(tmp_path / "new"), "--no-open") == 1
    assert "nowhere is missing; install minimx again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "command_of", "hinted"),
    [
        (["book", "x", "--no-browser"], "book", True), (["book", "x", "y"], "book", False), (["names", "nd.dot", "--all"], "names", False),
        (["doctor", "now"], "doctor", False), (["--fast"], "", False),
    ],
)  # fmt: skip
def test_an_unknown_argument_shows_the_usage_of_its_command(
    arguments: list[str], command_of: str, hinted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["minimx", *arguments])
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == 2
    usage, *_, said = capsys.readouterr().err.splitlines()
    assert usage.startswith(f"usage: python -m minimx {command_of or '[-h]'}")
    hint = "; an option of JupyterLab is given as in --jupyter=--no-browser" if hinted else ""
    name = f"python -m minimx {command_of}".strip()
    assert said == f"{name}: error: unrecognized arguments: {arguments[-1]}{hint}"


def test_info_and_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MINIMX_HOME", "somewhere")
    monkeypatch.setattr(sys, "argv", ["minimx", "info"])
    assert command.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("minimx ")
    assert lines[1].startswith("cores: ")
    assert "MINIMX_HOME=somewhere" in lines
    monkeypatch.setattr(sys, "argv", ["minimx"])
    assert command.main() == 2
    assert "doctor" in capsys.readouterr().out
