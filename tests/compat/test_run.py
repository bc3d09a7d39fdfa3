"""`python -m minimx run`: scripts, modules and notebooks written for MXNet, unchanged."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import minimx
from minimx.compat import cells, launch, lent, notebooks, run, scalars

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os
os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"
import sys
from collections import Mapping
import mxnet as mx
from mxnet import nd, gluon
from mxnet.gluon import nn
"""


def command(*arguments, cwd, **env):
    """The finished process of `python -m minimx run`, from a folder that is not the source tree."""
    line = [sys.executable, "-m", "minimx", "run", *map(str, arguments)]
    kept = {name: value for name, value in os.environ.items() if name not in ("MINIMX_LEND",)}
    return subprocess.run(
        line, cwd=cwd, capture_output=True, text=True, timeout=100, env={**kept, "PYTHONPATH": str(ROOT), **env}, check=False
    )


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return path


# ---- scripts


def test_a_script(tmp_path):
    """Arguments, the first entry of the path, the name of the main module, variables set before the import: as Python does."""
    folder = tmp_path / "code"
    folder.mkdir()
    write(folder / "helper.py", "from mxnet import nd\ndef two(): return nd.ones((2,)) * 2\n")
    script = write(
        folder / "train.py",
        SCRIPT
        + """
        import helper
        print(helper.two().asnumpy(), nn.Dense(2).name)
        print(sys.argv, sys.path[0], __name__, __file__, __spec__)
        from minimx.engine import front
        print(front.current_mode() if hasattr(front, "current_mode") else "-", mx is __import__("minimx"))
        sys.exit(7)
        """.replace("\n        ", "\n"),
    )
    done = command("code/train.py", "--epochs", "2", "-m", cwd=tmp_path)
    assert done.stdout.splitlines()[:2] == [
        "[2. 2.] dense0",
        f"['code/train.py', '--epochs', '2', '-m'] {folder} __main__ {script} None",
    ]
    assert done.returncode == 7
    assert done.stderr.splitlines() == [
        f"minimx lends collections.Mapping, gone since Python 3.10: write collections.abc.Mapping ({script}, line 5)"
    ]


GPUS = "import mxnet as mx\nprint(mx.num_gpus(), (mx.nd.ones((2,), ctx=mx.gpu(1)) + 1).context)\n"


@pytest.mark.parametrize(
    "options", [["--simulate-gpus", "2"], ["--simulate-gpus=2", "--no-lend"], ["--no-lend", "--simulate-gpus", "2"]]
)
def test_a_script_that_wants_gpus(options, tmp_path):
    write(tmp_path / "train.py", GPUS)
    assert command(*options, "train.py", cwd=tmp_path).stdout == "2 gpu(1)\n"


def test_a_notebook_that_wants_gpus(tmp_path):
    notebook(tmp_path / "a.ipynb", GPUS)
    assert command("a.ipynb", "--simulate-gpus", "2", cwd=tmp_path).stdout == "2 gpu(1)\n"


def test_a_script_that_wants_gpus_is_told_how(tmp_path):
    write(tmp_path / "train.py", GPUS)
    done = command("train.py", cwd=tmp_path)
    if done.returncode == 0:
        pytest.skip("there are GPUs")
    assert "`python -m minimx run --simulate-gpus " in done.stderr
    done = command("--simulate-gpus", "1", "train.py", cwd=tmp_path)
    assert "gpu(1) is not there: 1 GPUs are simulated; simulate 2" in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("-1", "--simulate-gpus -1: a number from 0 to 1024 is wanted"),
        ("1025", "--simulate-gpus 1025: a number"),
        ("two", "invalid int value"),
    ],
)
def test_wrong_numbers_of_gpus(given, says, tmp_path, capsys):
    path = write(tmp_path / "train.py", GPUS)
    with pytest.raises(SystemExit):
        run.main(["--simulate-gpus", given, str(path)])
    assert says in capsys.readouterr().err


def test_a_traceback_has_no_frame_of_ours(tmp_path):
    write(tmp_path / "fails.py", "import mxnet as mx\nmx.nd.ones((2,)).reshape((3,))\n")
    done = command("fails.py", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{tmp_path}/fails.py", line 2, in <module>']
    assert "runpy" not in done.stderr
    assert "minimx/compat" not in done.stderr


def test_without_lending(tmp_path):
    write(tmp_path / "old.py", "import mxnet as mx\nprint(mx.__version__)\nfrom collections import Mapping\n")
    done = command("old.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1.9.1\n")
    done = command("--no-lend", "old.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, f"{minimx.__version__}\n")
    assert "cannot import name 'Mapping'" in done.stderr


needs_refusal = pytest.mark.skipif(not scalars.refused(), reason="this NumPy converts arrays of shape (1,) by itself")


@needs_refusal
def test_arrays_of_one_element_are_numbers_as_they_were(tmp_path):
    text = """
    import mxnet as mx
    loss = mx.nd.array([1.0, 2.0]).mean()
    print("%.2f %d" % (loss.asnumpy(), loss.asnumpy()))
    print(float(loss.asnumpy() / 2))
    """
    script = write(tmp_path / "old.py", text)
    done = command("old.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1.50 1\n0.75\n"), done.stderr
    note = "gone since NumPy 2.4 for the shape (1,): write x.asscalar()"
    assert done.stderr == f"minimx lends float(x.asnumpy()), {note} ({script}, line 4)\n"
    done = command("--no-lend", "old.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(f"TypeError: {lent.REFUSED}\n")


@needs_refusal
def test_what_cannot_be_lent_is_told_what_to_write(tmp_path):
    script = write(tmp_path / "old.py", "import mxnet as mx\nprint(float(mx.nd.ones((2, 1)).asnumpy()[0]))\n")
    done = command(script, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [f"TypeError: {lent.REFUSED}", lent.INSTEAD]


@needs_refusal
@pytest.mark.parametrize("kernel", [pytest.param(True, marks=pytest.mark.slow), False])
def test_notebooks_are_told_too(kernel, tmp_path, monkeypatch, capfd):
    path = notebook(tmp_path / "a.ipynb", "import mxnet as mx", "float(mx.nd.ones((2, 1)).asnumpy()[0])")
    if kernel:
        if not notebooks.can_use_kernel():
            pytest.skip("needs nbclient and ipykernel")
        assert notebooks.run(str(path), None, True) == 1
        said = capfd.readouterr().err
    else:
        done = subprocess.run(
            [sys.executable, notebooks.CELLS, path], env=launch.environment(), capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 1
        said = done.stderr
    assert lent.INSTEAD in said.splitlines()


def test_a_module_and_a_command(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    write(package / "__init__.py", "")
    write(package / "train.py", "import mxnet, sys\nprint(mxnet.__name__, __spec__.name, sys.argv[1:], sys.path[0])\n")
    done = command("-m", "package.train", "--lr", "1", cwd=tmp_path)
    assert done.stdout == f"minimx package.train ['--lr', '1'] {tmp_path}\n", done.stderr
    assert command("-c", "import mxnet; print(mxnet.__name__)", cwd=tmp_path).stdout == "minimx\n"


WORKERS = """
import multiprocessing, subprocess, sys
import mxnet as mx
from mxnet.gluon.data import Dataset, DataLoader

class Numbers(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        import mxnet.nd
        assert mxnet.nd.array([index]).asscalar() == index
        return index

def name_of_mxnet(_):
    import mxnet
    return mxnet.__name__

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(1) as pool:
        print(pool.map(name_of_mxnet, [0]))
    print([batch.asnumpy().tolist() for batch in DataLoader(Numbers(), 3, num_workers=2)])
    print(subprocess.check_output([sys.executable, "-c", "import mxnet; print(mxnet.__name__)"], text=True).strip())
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_and_programs_see_the_alias(tmp_path, method):
    if method == "fork" and sys.platform == "win32":
        pytest.skip("Windows has no fork")
    write(tmp_path / "workers.py", WORKERS)
    done = command("workers.py", method, cwd=tmp_path, PYTHONWARNINGS="ignore")
    assert done.stdout.splitlines() == ["['minimx']", "[[0, 1, 2], [3, 4, 5]]", "minimx"], done.stderr


def test_another_sitecustomize_still_runs(tmp_path):
    write(tmp_path / "sitecustomize.py", "import builtins; builtins.customized = 'yes'\n")
    done = command("-c", "print(customized)", cwd=tmp_path, PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert done.stdout == "yes\n", done.stderr


def test_the_environment():
    env = launch.environment(lend=False)
    assert env["PYTHONPATH"].split(os.pathsep)[0] == str(launch.STARTUP)
    assert env["MINIMX_LEND"] == "0"
    assert launch.environment()["MINIMX_LEND"] == "1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "a script, a notebook, or -m and a module is wanted"),
        (["-m"], "a script, a notebook, or -m and a module is wanted"),
        (["no_such_file.py"], "there is no file no_such_file.py"),
        (["--nonsense", __file__], "unrecognized arguments: --nonsense"),
        (["--output", "x.ipynb", __file__], "--output and --inplace are for notebooks"),
    ],
)
def test_wrong_arguments(arguments, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        run.main(arguments)
    assert stopped.value.code == 2
    assert says in capsys.readouterr().err


# ---- notebooks


def notebook(path, *sources):
    """A file with a code cell for each of `sources`."""
    made = [
        {"cell_type": "code", "source": textwrap.dedent(source).strip(), "metadata": {}, "outputs": [], "execution_count": None}
        for source in sources
    ]
    made.insert(1, {"cell_type": "markdown", "source": "some text", "metadata": {}})
    kernel = {"kernelspec": {"name": "conda_mxnet_p36", "display_name": "gone", "language": "python"}}
    path.write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 2}))
    return path


CELLS = (
    "%matplotlib inline\nfrom IPython import display\nimport numpy as np\nimport mxnet as mx",
    "display.set_matplotlib_formats('svg')\nx = mx.nd.arange(3)\nnp.float(1.5)",
    "print('sum', x.sum().asscalar())",
)
needs_kernel = pytest.mark.skipif(not notebooks.can_use_kernel(), reason="needs nbclient and ipykernel")
needs_matplotlib = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs matplotlib")


@needs_kernel
def test_a_notebook_is_told_of_its_own_line(tmp_path):
    """And not of the temporary file in which a kernel keeps a cell."""
    notebook(tmp_path / "a.ipynb", "import numpy as np\nx = np.float(1)")
    done = command("a.ipynb", cwd=tmp_path)
    assert done.stderr == "minimx lends np.float, gone since NumPy 1.24: write float (a notebook cell, line 2: x = np.float(1))\n"


@needs_kernel
@needs_matplotlib
def test_a_notebook_in_a_kernel(tmp_path):
    """Its outputs go into a copy; the kernel that it was written for need not exist."""
    path = notebook(tmp_path / "book.ipynb", *CELLS)
    before = path.read_bytes()
    done = command("--output", "done.ipynb", "book.ipynb", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    cells_done = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    assert cells_done[2]["outputs"][-1]["data"]["text/plain"] == ["1.5"]
    assert cells_done[3]["outputs"][0]["text"] == ["sum 3.0\n"]
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "book.ipynb").write_text("not even read", encoding="utf-8")
    done = command("--output", "none/done.ipynb", "book.ipynb", cwd=tmp_path)
    assert done.returncode == 2
    assert "--output none/done.ipynb: the folder none is not there; make it first" in done.stderr


@needs_kernel
def test_a_notebook_that_fails(tmp_path):
    """The error is printed and in the copy; the notebook itself is not written over."""
    path = notebook(tmp_path / "book.ipynb", "import mxnet as mx\nprint('before')", "mx.np.ones(3)", "print('never')")
    before = path.read_bytes()
    done = command("--inplace", "book.ipynb", cwd=tmp_path)
    assert done.returncode == 1
    assert "has no attribute 'np': the NumPy interface that MXNet 1.6 added" in done.stderr
    assert done.stderr.splitlines()[0] == "cell 3:"
    assert done.stderr.splitlines()[-1] == "minimx run: book.ipynb: a cell failed"
    assert path.read_bytes() == before


@needs_kernel
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_a_notebook_that_is_interrupted(tmp_path):
    """What cells print is seen at once, and the kernel is stopped."""
    notebook(tmp_path / "sleeps.ipynb", "print('begun', flush=True)", "import time; time.sleep(100)")
    line = [sys.executable, "-m", "minimx", "run", "sleeps.ipynb"]
    pipe, env = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(line, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "minimx run: sleeps.ipynb: interrupted"


def test_what_is_printed_of_outputs(capsys):
    figure = {"data": {"image/png": "...", "text/plain": "<Figure size 640x480 with 1 Axes>"}}
    for quiet in (False, True):
        notebooks.show("stream", {"name": "stdout", "text": "a\n"}, 1, quiet)
        notebooks.show("stream", {"name": "stderr", "text": "b\n"}, 1, quiet)
        notebooks.show("display_data", figure, 1, quiet)
        notebooks.show("execute_result", {"data": {"text/plain": "3"}}, 1, quiet)
        notebooks.show("status", {}, 1, quiet)
        error = {"traceback": ["\x1b[31mTraceback\x1b[0m", "NameError"], "ename": "NameError", "evalue": "x"}
        notebooks.show("error", error, 2, quiet)
    said = capsys.readouterr()
    assert said.out == "a\n<Figure size 640x480 with 1 Axes>\n3\n"
    assert said.err == "b\ncell 2:\nTraceback\nNameError\ncell 2:\nTraceback\nNameError\n"


def test_a_notebook_without_a_kernel(tmp_path):
    """The cells run as plain Python."""
    path = notebook(
        tmp_path / "book.ipynb",
        "%load_ext autoreload\n%autoreload 2\nimport mxnet as mx\nimport sys",
        "%%time\ny = mx.nd.ones((2,))",
        "def total(a):\n    return int(a.sum().asscalar())\n\ntotal(y)",
        "total(y);",
        "print(sys.argv, __name__)",
    )
    env = {**launch.environment(), "PYTHONPATH": f"{launch.STARTUP}{os.pathsep}{ROOT}"}
    line = [sys.executable, str(notebooks.CELLS), str(path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=env, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].startswith("Wall time: ")
    assert lines[1:] == ["2", f"[{str(path)!r}] __main__"]


def test_an_error_without_a_kernel(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "def f():\n    1 / 0", "f()")
    done = subprocess.run(
        [sys.executable, str(notebooks.CELLS), str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if not set(line) <= set(" ~^")]
    assert lines[:6] == [
        "cell 3:",
        "Traceback (most recent call last):",
        '  File "<cell 3>", line 1, in <module>',
        "    f()",
        '  File "<cell 1>", line 2, in f',
        "    1 / 0",
    ]


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("x = 1", "x = 1"),
        ("%config InlineBackend.figure_format = 'svg'\nx", "pass  # %config InlineBackend.figure_format = 'svg'\nx"),
        ("if x:\n    %matplotlib inline", "if x:\n    __magic__.matplotlib('inline')"),
        ("%time f(1)", "__magic__.begin(); f(1); __magic__.end()"),
        ("text = '''\n%time\n'''", "text = '''\n%time\n'''"),
        ("x = (", "x = ("),
    ],
)
def test_magic_as_python(source, python):
    assert cells.as_python(source, 1) == python


@pytest.mark.parametrize(
    "source", ["!pip install mxnet", "%%bash\nls", "%pip list", "x = 1\n%timeit f()", "files = !ls", "help?", "?x"]
)
def test_magic_that_is_refused(source):
    with pytest.raises(cells.Refused, match=r"cell 4: .*needs IPython; pip install 'minimx\[book\]'"):
        cells.as_python(source, 4)


@pytest.mark.parametrize("text", ["", "{}", '{"cells": [{}]}', '{"cells": 3}', "[1]"])
def test_files_that_are_no_notebooks(text):
    with pytest.raises(cells.Refused, match="it is no notebook"):
        cells.code_cells(text)


def test_the_old_form_of_notebooks():
    text = json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["a\n", "b"]}]}]})
    assert cells.code_cells(text) == {1: "a\nb"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--output", "a.ipynb", "--inplace", "FILE"], "exclude each other"),
        (["--output", "a.ipynb", "FILE", "--inplace"], "exclude each other"),
        (["FILE", "--epochs", "3"], "a notebook takes no arguments, got --epochs 3"),
    ],
)
def test_wrong_arguments_for_notebooks(arguments, says, tmp_path, capsys):
    path = notebook(tmp_path / "a.ipynb", "1")
    with pytest.raises(SystemExit):
        run.main([str(path) if each == "FILE" else each for each in arguments])
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("behind", [False, True])
def test_options_before_or_behind_a_notebook(behind, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(notebooks, "run", lambda *arguments: calls.append(arguments) or 0)
    path, options = str(notebook(tmp_path / "a.ipynb", "1")), ["--no-lend", "--output", "b.ipynb"]
    assert run.main([path, *options] if behind else [*options, path]) == 0
    assert run.main([path, "--inplace"] if behind else ["--inplace", path]) == 0
    assert calls == [(path, "b.ipynb", False), (path, path, True)]


def test_writing_without_a_kernel_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "can_use_kernel", lambda: False)
    assert run.main(["--inplace", str(notebook(tmp_path / "a.ipynb", "1"))]) == 2
    assert "takes a kernel: pip install 'minimx[book]'" in capsys.readouterr().err


@needs_kernel
def test_a_broken_notebook(tmp_path, capsys):
    path = write(tmp_path / "a.ipynb", "nonsense")
    assert run.main([str(path)]) == 1
    assert "is no notebook" in capsys.readouterr().err
