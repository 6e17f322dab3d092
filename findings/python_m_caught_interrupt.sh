#!/bin/bash
# What one expects: a program that catches KeyboardInterrupt and ends with sys.exit(7) ends with status 7, however it was started.
# What happens: if the exception has left a text that was executed with exec(), as namedtuple and dataclass do while they make a class,
# `python -m program` is killed by SIGINT at its end (status 130 in a shell, -2 for subprocess); `python program.py` ends with 7. So a
# program that a signal handler stops with KeyboardInterrupt while it imports loses its exit status, now and then. One more exec("")
# after the exception was caught is the remedy.
# Version: CPython 3.11.7, 3.12.1, 3.13.0
# Source: run_eval_code_obj in Python/pythonrun.c notes an interrupt that leaves executed text, and clears the note only when the next
# text is executed; Py_RunMain in Modules/main.c looks at the note after sys.exit, too
# Date: 2026-11-29
# Seen:
#     CPython 3.11.7
#     python program.py: ends with 7
#     python -m program: ends with 130
#     python -m program, exec("") after it was caught: ends with 7

set -euo pipefail
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -c 'import platform; print(platform.python_implementation(), platform.python_version())'
cat > program.py <<'END'
import sys

try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    pass
if sys.argv[1:] == ["again"]:
    exec("")
sys.exit(7)
END
status() {  # of a command that may fail
    local code=0
    "$@" > out.txt 2>&1 || code=$?
    echo "$code"
}
file=$(status python3 program.py)
module=$(status python3 -m program)
again=$(status python3 -m program again)
echo "python program.py: ends with $file"
echo "python -m program: ends with $module"
echo "python -m program, exec(\"\") after it was caught: ends with $again"
[ "$file $module $again" = "7 130 7" ] || { echo "this has changed"; exit 1; }
