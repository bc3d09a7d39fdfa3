"""The commands of `python -m minimx`, a file each: `add_arguments(parser)` says what a command takes, `run(chosen)` does it and returns the
exit status. What belongs to another part of minimx stands there: `run` and `names` in compat/, `im2rec` in image/.
"""
