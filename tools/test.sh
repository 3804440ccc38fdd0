#!/bin/sh
# Runs the matrix and closes with a summary: `make test` calls it, with `tox run`'s arguments if there are any.
#
# Everything that needs one core runs side by side, one environment more than there are cores, because some wait for a
# server; the tests on Spark, which take all cores, run after it: ordinary ones beside those that wait for timeouts.
bin=.venv/bin
path=$($bin/python tools/interpreters.py) || exit 1
PATH=$path:$PATH
export PATH

status=0
if [ $# -gt 0 ]; then
    $bin/tox run --colored no "$@" || status=$?
else
    tag=$($bin/python -c 'import sys; print("py%d%d" % sys.version_info[:2])')
    side_by_side=$(($(getconf _NPROCESSORS_ONLN) + 1))
    $bin/tox run-parallel --colored no --parallel-no-spinner -p "$side_by_side" --skip-env "^$tag-(integration|chaos)\$" || status=$?
    $bin/tox run-parallel --colored no --parallel-no-spinner -p 2 -e "$tag-integration,$tag-chaos" || status=$?
fi
$bin/python tools/summary.py build/reports || status=1
exit $status
