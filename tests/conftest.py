"""Scripts that want real MXNet are no tests, though pytest looks for examples in every file."""

collect_ignore_glob = ["record_*.py", "*/record_*.py", "roundtrip_mxnet.py"]
