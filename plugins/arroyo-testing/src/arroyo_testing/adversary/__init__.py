"""Spark at its worst, in this process: everything that Spark may do to a job, by a seed, thousands of times.

    adversary = Adversary(seed)
    job = Job(plan, adversary.executor(plugins), plugins=plugins, storage_url=url, lanes=adversary.lanes())

What it does is what Spark may do (see `Deed`):

- A task may have several attempts, at once or one after the other. The output of one of them counts, whichever
  finished first; the others may run on, and write, long after.
- An attempt may end anywhere, without a word. What it wrote stays.
- The output of a finished task is lost with its host. The task is run again then; who has read the first output
  keeps what it read, and who has not reads the second. So the output of a stage may be of mixed attempts.
- A task reads the outputs of the stage before in any order, each of them in its own order.
- The same attempt at the same epoch need not end at the same row: sources are stopped by the clock.
- A job may fail as a whole, also when everything is done, and a driver may die anywhere.
"""

from arroyo_testing.adversary.adversary import Adversary
from arroyo_testing.adversary.attempt import AttemptLostError
from arroyo_testing.adversary.odds import NO_ODDS, Deed, Odds

__all__ = ["NO_ODDS", "Adversary", "AttemptLostError", "Deed", "Odds"]
