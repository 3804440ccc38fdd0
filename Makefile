# make demo and make test need Python 3.11+ (with venv), Java 17+ and make; they set up everything else.
SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
DEMO := examples/nexmark_hot_bids.yaml

# A folder that starts with _ is not a distribution; tools/distributions.py applies the same rule.
FOLDERS := $(filter-out $(wildcard plugins/_*/ udfs/_*/),$(patsubst %pyproject.toml,%,$(wildcard plugins/*/pyproject.toml udfs/*/pyproject.toml)))
PROJECTS := pyproject.toml $(addsuffix pyproject.toml,$(FOLDERS))

# pyspark is published as a source distribution of 450 MB: built once, its wheel serves every environment.
WHEELHOUSE := $(VENV)/wheelhouse
PYSPARK := $(shell sed -n 's/^\(pyspark==[^ ]*\).*/\1/p' constraints.txt)
# The pin of a package with its hashes: pip takes them from requirements only.
pinned = sed -n '/^$(1)==/,/[^\\]$$/p' constraints.txt
export UV_FIND_LINKS := $(CURDIR)/$(WHEELHOUSE)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# uv takes the interpreters that are there, and is patient with slow indexes.
export UV_PYTHON_DOWNLOADS := never
export UV_HTTP_TIMEOUT := 300
# uv does not read pip's settings; a mirror that pip is told to use serves both.
ifndef UV_DEFAULT_INDEX
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX := $(PIP_INDEX_URL)
endif
endif
# An activated environment elsewhere must not be the one that is installed into.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
unexport CONDA_PREFIX PYTHONPATH PYTHONHOME
# Every Spark worker would compile all it imports, each time again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help env demo test chaos chaos-processes chaos-kafka chaos-orders chaos-scale adversary live-network live-messages cuts soak soak-files many mutations sql-queries sql-snapshots fuzz azure google quick lint format proto docs-reference lock licences sbom wheels bench bench-smoke bench-bridges bench-cdc bench-console bench-delta bench-epochs bench-formats bench-iceberg bench-kafka bench-live bench-mysql bench-operators bench-postgres bench-sql bench-state bench-udf plugin java kafka clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

env: $(STAMP) ## make .venv with the core, all plugins and UDFs, and the tools

$(STAMP): constraints.txt Makefile $(PROJECTS)
	@python=$$(sh tools/find_python.sh) || exit 1; \
	    if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV); fi
	@$(call pinned,uv) > $(VENV)/uv.txt && $(BIN)/python -m pip install --quiet --require-hashes -r $(VENV)/uv.txt
	@mkdir -p $(WHEELHOUSE)
	@$(BIN)/python tools/install.py --group build
	@ls $(WHEELHOUSE)/$(subst ==,-,$(PYSPARK))-*.whl >/dev/null 2>&1 || rm -f $(WHEELHOUSE)/*
	@$(BIN)/python tools/sparks.py wheel constraints.txt --into $(WHEELHOUSE) >/dev/null
	@echo "installing the core, the plugins and the tools"
	@$(BIN)/python tools/install.py --group dev --editable .[spark] $(foreach folder,$(FOLDERS),--editable $(folder))
	@touch $@

java: ## check that Java 17 or newer is there
	@python=$$(sh tools/find_python.sh) || exit 1; "$$python" tools/check_java.py

demo: java $(STAMP) ## run a Nexmark pipeline with a shuffle into Parquet files, and show some of them
	@rm -rf out/nexmark_hot_bids
	@$(BIN)/arroyo run $(DEMO)
	@$(BIN)/python tools/show_result.py out/nexmark_hot_bids
	@printf '\nThe pipeline is %s, the command is %s. Next: docs/tutorial.md\n' '$(DEMO)' '$(BIN)/arroyo'

kafka: java $(STAMP) ## run a Kafka broker on 127.0.0.1 for trying out, until Ctrl-C: make kafka PORT=9092
	@$(BIN)/arroyo kafka broker --port $(or $(PORT),9092)

test: java $(STAMP) wheels ## run everything: lint, types, and the tests of every distribution on every Python
	@rm -rf build/reports && mkdir -p build/reports
	@sh tools/test.sh $(TOX_ARGS) </dev/null

chaos: adversary sql-queries chaos-processes chaos-kafka chaos-orders chaos-scale ## all of docs/chaos.md, hours: make chaos KILLS=300 PAUSES=100 SEEDS=3000 SEED=7

chaos-processes: java $(STAMP) ## kill and pause processes of a job at random until its end: make chaos-processes KILLS=300 PAUSES=100 SEED=7 EXECUTION=live
	@CHAOS_EXECUTION=$(EXECUTION) CHAOS_KILLS=$(or $(KILLS),300) CHAOS_PAUSES=$(or $(PAUSES),100) CHAOS_SEED=$(SEED) $(BIN)/pytest -q -s tests/chaos

chaos-kafka: java $(STAMP) ## kill and pause a job from topic to topic, and its broker: make chaos-kafka KILLS=200 SEED=7
	@CHAOS_KILLS=$(or $(KILLS),200) CHAOS_SEED=$(SEED) $(BIN)/pytest -q -s tests/kafka

chaos-orders: java $(STAMP) ## kill a job from PostgreSQL and Kafka to PostgreSQL and Iceberg: make chaos-orders KILLS=20 SEED=7
	@ORDERS_KILLS=$(or $(KILLS),20) ORDERS_SEED=$(SEED) $(BIN)/pytest -q -s tests/orders

chaos-scale: java $(STAMP) ## run jobs at the edges of size, each alone, and print memory, calls and bytes: make chaos-scale CASES="hot_key"
	@$(BIN)/python -m tests.scale $(CASES)

adversary: $(STAMP) ## run pipelines on a Spark that does its worst, in process: make adversary SEEDS=3000 SEED=7
	@ADVERSARY_SEEDS=$(or $(SEEDS),3000) ADVERSARY_SEED=$(SEED) $(BIN)/pytest -q -s tests/adversary

live-network: $(STAMP) ## run live workers over a network that fails, by seeds: make live-network SEEDS=3000 SEED=1
	@LIVE_NETWORK_SEEDS=$(or $(SEEDS),3000) LIVE_NETWORK_SEED=$(or $(SEED),1) $(BIN)/pytest -q tests/unit/runtime/live/test_network.py

live-messages: $(STAMP) ## cut, double, delay and let overtake every message of a live run, one after the other
	@LIVE_NETWORK_MESSAGES=all LIVE_NETWORK_SEEDS=1 $(BIN)/pytest -q tests/unit/runtime/live/test_network.py

cuts: $(STAMP) ## cut pipelines into epochs anywhere, with idle subtasks, and compare: make cuts SEEDS=300 SEED=7
	@EPOCH_CUT_SEEDS=$(or $(SEEDS),300) EPOCH_CUT_SEED=$(or $(SEED),1) $(BIN)/pytest -q tests/golden tests/nexmark plugins/*/tests -k "anywhere or any_cut_in_a_pipeline or any_cut_gives"

soak: java $(STAMP) ## run a job for an hour and see that nothing grows: make soak MINUTES=60 JOB=live_windows; results in build/soak
	@$(BIN)/python -m tests.soak --job $(or $(JOB),windows) --minutes $(or $(MINUTES),60) $(SOAK_ARGS)

soak-files: $(STAMP) ## let 20,000 small files come in half an hour and see that nothing grows: make soak-files MINUTES=30 FILES=20000
	@$(BIN)/python -m tests.soak.files --minutes $(or $(MINUTES),30) --files $(or $(FILES),20000)

many: java $(STAMP) ## run many pipelines in one session, harm some, and print memory and times: make many MINUTES=20 PIPELINES=20
	@$(BIN)/python -m tests.many --minutes $(or $(MINUTES),20) --pipelines $(or $(PIPELINES),20) $(MANY_ARGS)

mutations: $(STAMP) ## plan pipelines that are changed at random, in untrusted mode: make mutations COUNT=20000 SEED=7
	@$(BIN)/python -m tests.mutations --count $(or $(COUNT),20000) --seed $(or $(SEED),1)

sql-queries: $(STAMP) ## make SQL queries at random, and compare their rows with DuckDB's: make sql-queries COUNT=10000 SEED=1
	@$(BIN)/python -m tests.sql_queries --count $(or $(COUNT),10000) --seed $(or $(SEED),1)

sql-snapshots: $(STAMP) ## write the plans of the examples in SQL again, after a change of the planner or of DataFusion
	@$(BIN)/python -m tests.sql_queries.snapshots

fuzz: $(STAMP) ## search by coverage for bytes that harm a reader, an hour each: make fuzz SECONDS=3600 TARGETS="yaml json"
	@$(BIN)/python tools/install.py --group fuzz
	@$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),3600) $(TARGETS)

azure: $(STAMP) ## hold state in Azure's storage against Azurite, its emulator, which npm installs into build/
	@$(BIN)/python tools/install.py --group azure
	@npm install --silent --no-audit --no-fund --prefix build/azurite azurite@3.37.0
	@ARROYO_AZURITE=build/azurite/node_modules/.bin/azurite-blob $(BIN)/pytest -q tests/integration/test_azure.py

google: $(STAMP) ## hold state in Google's storage against fake-gcs-server, an emulator, which go installs into build/
	@$(BIN)/python tools/install.py --group google
	@GOBIN=$(CURDIR)/build/google go install github.com/fsouza/fake-gcs-server@v1.56.1
	@ARROYO_FAKE_GCS=build/google/fake-gcs-server $(BIN)/pytest -q tests/integration/test_google.py

quick: $(STAMP) ## run the unit tests in .venv, without tox and without Spark
	@$(BIN)/pytest -q tests/unit
	@for folder in $(FOLDERS); do \
	    if [ -d $${folder}tests ]; then $(BIN)/pytest -q $${folder}tests --ignore=$${folder}tests/integration || exit 1; fi; done

lint: $(STAMP) wheels ## formatting, lint, types, layers and generated code only
	@$(BIN)/tox run --colored no -e lint </dev/null

format: $(STAMP) ## format the code, and fix what ruff can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

proto: $(STAMP) ## regenerate the protobuf code
	@$(BIN)/python tools/proto.py

docs-reference: $(STAMP) ## write docs/reference again, after a change of a config, a command or a docstring
	@$(BIN)/arroyo docs --format markdown -o docs/reference
	@$(BIN)/python -m arroyo_sql.reference docs/sql-reference.md

lock: $(STAMP) ## write constraints.txt again after a change of requirements (UPGRADE=1: with the newest versions)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

licences: $(STAMP) ## write docs/licences.md again, after a change of requirements
	@$(BIN)/python tools/licences.py

sbom: $(STAMP) wheels ## list everything that an installation brings, with versions and licences: build/sbom.json (CycloneDX)
	@$(BIN)/python tools/sbom.py

wheels: $(STAMP) ## build the wheels that changed into dist/
	@$(BIN)/python tools/wheels.py

bench: java $(STAMP) ## measure Nexmark beside Structured Streaming, PyFlink and others, an hour: BENCH_ARGS="--help"
	@$(BIN)/python -m benchmarks.nexmark $(BENCH_ARGS)

bench-smoke: java $(STAMP) ## see in minutes that the benchmark works; answers are checked, times are not
	@$(BIN)/python -m benchmarks.nexmark smoke

bench-epochs: java $(STAMP) ## measure what an epoch costs, as make bench does, too
	@$(BIN)/python -m benchmarks.epochs $(BENCH_ARGS)

bench-live: java $(STAMP) ## measure live workers beside Structured Streaming, PyFlink and Polars, half an hour: BENCH_ARGS="--help"
	@$(BIN)/python -m benchmarks.live $(BENCH_ARGS)

bench-operators: java $(STAMP) ## measure each window and join beside DuckDB and Structured Streaming
	@$(BIN)/python -m benchmarks.operators $(BENCH_ARGS)

bench-formats: $(STAMP) ## measure formats of messages beside the bare libraries (BENCH_ARGS=odd: files with odd and bad lines)
	@$(BIN)/python -m benchmarks.formats $(BENCH_ARGS)

bench-bridges: java $(STAMP) ## measure DataFrames in and out of pipelines beside Spark itself (BENCH_ARGS="--rows 10000000")
	@$(BIN)/python -m benchmarks.bridges $(BENCH_ARGS)

bench-cdc: $(STAMP) ## measure postgres.cdc and mysql.cdc beside bare readers, on servers that it starts (BENCH_ARGS="--rows 200000")
	@$(BIN)/python -m benchmarks.cdc $(BENCH_ARGS)

bench-console: $(STAMP) ## measure the server of the console: 200 jobs, a graph of 300 operators, 50 clients (BENCH_ARGS="--seconds 1200")
	@$(BIN)/python -m benchmarks.console $(BENCH_ARGS)

bench-delta: $(STAMP) ## measure Delta Lake tables beside the bare library (BENCH_ARGS="--rows 500000 --epochs 6")
	@$(BIN)/python -m benchmarks.delta $(BENCH_ARGS)

bench-iceberg: $(STAMP) ## measure Iceberg tables beside the bare library (BENCH_ARGS="--rows 500000 --epochs 6")
	@$(BIN)/python -m benchmarks.iceberg $(BENCH_ARGS)

bench-mysql: $(STAMP) ## measure the sink of MySQL beside LOAD DATA by hand, on a server that it starts (BENCH_ARGS="--rows 200000")
	@$(BIN)/python -m benchmarks.mysql_sink $(BENCH_ARGS)

bench-postgres: $(STAMP) ## measure the sink of PostgreSQL beside COPY by hand, on a server that it starts (BENCH_ARGS="--rows 1000000")
	@$(BIN)/python -m benchmarks.postgres_sink $(BENCH_ARGS)

bench-kafka: java $(STAMP) ## measure topics beside Structured Streaming, Bytewax and a bare loop
	@$(BIN)/python -m benchmarks.kafka $(BENCH_ARGS)

bench-sql: $(STAMP) ## measure the queries of Nexmark in SQL beside the same in YAML: BENCH_ARGS="--help"
	@$(BIN)/python -m benchmarks.sql $(BENCH_ARGS)

bench-state: $(STAMP) ## measure state tables beside bare Parquet, DuckDB and a dict
	@$(BIN)/python -m benchmarks.state $(BENCH_ARGS)

bench-udf: java $(STAMP) ## measure user functions beside direct calls and UDFs of PySpark
	@$(BIN)/python -m benchmarks.udfs $(BENCH_ARGS)

plugin: $(STAMP) ## start a plugin from the template: make plugin NAME=arroyo-acme
	@$(BIN)/arroyo new plugin $(NAME) --into plugins

clean: ## remove what was built, and the results of the examples; .venv stays
	@rm -rf build dist out state .tox spark-warehouse metastore_db artifacts .mypy_cache .ruff_cache .pytest_cache \
	    .import_linter_cache .hypothesis
