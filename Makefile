# Shortcuts around CMake's presets. Everything works without them; see
# CONTRIBUTING.md. Paths are relative, so the checkout may lie anywhere.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CLANG_FORMAT ?= clang-format-14
CLANG_TIDY ?= clang-tidy-14
SAMPLE = examples/replay/sample/mooncake_conversation_1000.jsonl
RUN_ARGS ?=
SEEDS ?= 1..6000
CUDA_SEEDS ?= 1..1000
SEED ?= 1
COUNT ?= 60
MUTANTS_ARGS ?=
DISTRIBUTED_ARGS ?= --runs 20
LOAD_ARGS ?=
EQUALITY_ARGS ?=
GATE_LOADS = requests:(256|1000|1024|10000)/context:[0-9]+/blocks_per_chunk:1/ranks:1/(sliding/)?(threads:0|direct)
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
# The targets share build folders, so only one runs at a time.
.NOTPARALLEL:
.PHONY: asan bench bench-gate broken-gpu clean dependencies dev dev-clang \
  distributed equality explore format help load mutants planted run test tidy tsan

help: ## Show this list (the default)
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile \
	  | while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

dependencies: ## Install the Debian packages that are missing
	@.ci/install-dependencies

run: dependencies ## Build, then replay the bundled trace sample (RUN_ARGS=...)
	cmake --preset release
	cmake --build --preset release --target kvtide-replay -j $(JOBS)
	build/release/bin/kvtide-replay --trace $(SAMPLE) $(RUN_ARGS)

test: dependencies ## Build, then run all tests
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	@.ci/run-tests release -j $(JOBS)

dev: dependencies ## Test a debug build, warnings are errors
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	@.ci/run-tests dev -j $(JOBS)

dev-clang: dependencies ## The same with clang 14
	cmake --preset dev-clang
	cmake --build --preset dev-clang -j $(JOBS)
	@.ci/run-tests dev-clang -j $(JOBS)

asan: dependencies ## Test with the address and undefined behavior sanitizers
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	@.ci/run-tests asan -j $(JOBS)

tsan: dependencies ## Test what links no CAF with the thread sanitizer
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	@.ci/run-tests tsan -j $(JOBS)

explore: dependencies ## Run 160,000 schedules (SEEDS, CUDA_SEEDS)
	cmake --preset release
	cmake --build --preset release --target kvtide-explore -j $(JOBS)
	build/release/bin/kvtide-explore --scenario all --seeds $(SEEDS)
	build/release/bin/kvtide-explore --device cuda --scenario all \
	  --seeds $(CUDA_SEEDS)

distributed: dependencies ## Kill, stop and cut off ranks (DISTRIBUTED_ARGS=...)
	cmake --preset release
	cmake --build --preset release --target kvtide-replay kvtide-worker -j $(JOBS)
	tests/distributed/distributed.py build/release/bin/kvtide-replay \
	  build/release/bin/kvtide-worker $(DISTRIBUTED_ARGS)

load: dependencies ## 5,000 clients of a real server, of which a third go away
	cmake --preset release
	cmake --build --preset release --target kvtide-serve -j $(JOBS)
	tests/load/load.py build/release/bin/kvtide-serve $(LOAD_ARGS)
	tests/load/load.py build/release/bin/kvtide-serve --model sliding --seed 7 \
	  $(LOAD_ARGS)

equality: dependencies ## 2,000 prompts: the same tokens, whatever the cache does
	cmake --preset release
	cmake --build --preset release --target serve-equality -j $(JOBS)
	build/release/bin/serve-equality $(EQUALITY_ARGS)

bench: dependencies ## Measure steps and calls; an idle machine, please (minutes)
	cmake --preset release
	cmake --build --preset release --target bench-step bench-calls bench-api -j $(JOBS)
	build/release/bin/bench-step --benchmark_out=build/release/step.json
	bench/table.py build/release/step.json
	bench/table.py build/release/step.json --threads 1
	build/release/bin/bench-calls --benchmark_out=build/release/calls.json
	build/release/bin/bench-api --json build/release/api.json

bench-gate: dependencies ## Check the ratios that bench/README.md promises
	cmake --preset release
	cmake --build --preset release --target bench-step -j $(JOBS)
	build/release/bin/bench-step --benchmark_out=build/release/gate.json \
	  --benchmark_filter='$(GATE_LOADS)'
	bench/table.py build/release/gate.json --check

planted: dependencies ## Plant known races; all must be found (docs/planted.md)
	tests/planted/run.py --jobs $(JOBS)

broken-gpu: dependencies ## Break rules of the CUDA engine; tests must fail
	tests/gpu/cuda_broken/run.py --jobs $(JOBS)

mutants: dependencies ## Change code, see which tests notice (SEED=1 COUNT=60)
	tests/mutants/mutate.py --seed $(SEED) --count $(COUNT) \
	  --build-jobs $(JOBS) $(MUTANTS_ARGS)

format: ## Format all sources with clang-format 14
	git ls-files -z '*.c' '*.cpp' '*.hpp' include | xargs -0 $(CLANG_FORMAT) -i

tidy: dependencies ## Check all sources with clang-tidy 14
	cmake --preset dev
	git ls-files -z 'actors/*.cpp' 'capi/*.cpp' 'core/*.cpp' 'examples/*.cpp' \
	  'gpu/*.cpp' 'messages/*.cpp' | xargs -0 -n 1 -P $(JOBS) $(CLANG_TIDY) --quiet -p build/dev

clean: ## Remove all build folders
	rm -rf build
