#!/bin/sh
# Runs the matrix and closes with a summary: `make test` calls it, with `tox run`'s arguments if there are any.
#
# Everything runs side by side. The tests on Spark wait for processes and timeouts as much as they work: they begin first
# and have the right of way (see toxfile.py), and one environment per core uses what they leave. A few tests that fail
# there are run once more, alone (see second_try.py).
bin=.venv/bin
path=$($bin/python tools/interpreters.py) || exit 1
PATH=$path:$PATH
export PATH

status=0
if [ $# -gt 0 ]; then
    $bin/tox run --colored no "$@" || status=$?
else
    side_by_side=$(($(getconf _NPROCESSORS_ONLN) + 2))
    # What an earlier run has left is not what fails in this one.
    rm -f .tox/*/.pytest_cache/v/cache/lastfailed
    $bin/tox run-parallel --colored no --parallel-no-spinner -p "$side_by_side" --result-json build/reports/tox.json ||
        $bin/python tools/second_try.py build/reports || status=$?
fi
$bin/python tools/summary.py build/reports || status=1
exit $status
