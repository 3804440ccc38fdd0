"""A driver with a Spark of its own, which has run a job and waits until its input ends; run as a program."""

from __future__ import annotations

import os
import sys

#: A variable of the environment with a setting that nobody else is to see.
SECRET_VARIABLE = "WAITING_DRIVER_SECRET"


def main() -> None:
    from arroyo_core.spark.session import start_spark

    # As on machines whose users trust their group, or do not know better.
    os.umask(0)
    secret = {"spark.hadoop.fs.s3a.secret.key": os.environ[SECRET_VARIABLE]}
    context = start_spark("waiting", master="local[2]", conf=secret)
    keys = context.parallelize([0, 1], 2).map(lambda _: os.getpid()).collect()
    known = context._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
    sys.stdout.write(f"{len(keys)} tasks {'with' if known == os.environ[SECRET_VARIABLE] else 'without'} the secret\n")
    sys.stdout.flush()
    sys.stdin.read()
    context.stop()


if __name__ == "__main__":
    main()
