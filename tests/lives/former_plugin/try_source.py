from pathlib import Path

from acme_lines import LineSource

from arroyo_core.testing import SourceHarness

Path("logs").mkdir()
Path("logs/a.log").write_text("one\ntwo\nthree\n")
Path("logs/b.log").write_text("four\nfive\n")

harness = SourceHarness(lambda: LineSource("logs"))
first = harness.run(rows=2)
harness.run(rows=2, is_lost=True)  # a crash
second = harness.run(parallelism=2)
assert first.table["line"].to_pylist() == ["one", "two"]
assert sorted(second.table["line"].to_pylist()) == ["five", "four", "three"]
assert second.is_final
harness.close()

from arroyo_core.testing.conformance import Conformance, SourceCase

conformance = Conformance("acme_lines", [SourceCase("acme.lines", {"folder": str(Path("logs").absolute())})])
conformance.run()
