"""All workloads, one after the other. Options are those of harness.py; names such as `w2` choose workloads.

python benchmarks/run.py [w2 w5 ...] [--python mxnet=PATH/python] [--rounds 7] [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run each workload file with the options given."""
    names = [argument for argument in sys.argv[1:] if argument.startswith("w") and argument[1:].isdigit()]
    options = [argument for argument in sys.argv[1:] if argument not in names]
    files = sorted(HERE.glob("w[0-9]*.py"), key=lambda path: int(path.name.split("_")[0][1:]))
    chosen = [path for path in files if not names or path.name.split("_")[0] in names]
    if not chosen:
        sys.exit(f"no such workload; there are {', '.join(path.name.split('_')[0] for path in files)}")
    for path in chosen:
        subprocess.run([sys.executable, str(path), *options], check=True)


if __name__ == "__main__":
    main()
