# The two commands of a fresh Debian 12 machine are `make run` and `make test`; both install what is missing.
.DEFAULT_GOAL := help
.PHONY: help run serve test bench calibrate format coverage clean binaries

BIN := build/release/bin

# Llama 3 70B on two v5p slices of 4,096 chips: 2,048-way over batch and sequence, 4-way tensor.
RUN_FLAGS := --model examples/llama-3-70b/config.json --slice tpu-v5p:16x16x16 --slices 2 \
  --batch-tokens 4M --sequence 4096 --tokens 15T --parallelism fsdp=512,context=2,tensor=4,dcn.data=2

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*##\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: binaries  ## build, then time Llama 3 70B training on 8,192 TPU v5p chips
	$(BIN)/sliceplan train $(RUN_FLAGS)

serve: binaries  ## build, then run the server on port 50051
	$(BIN)/sliceplan-server --port 50051

test:  ## everything that CI runs; the last line counts it
	@scripts/install_packages.sh build test
	@scripts/check_all.py

bench:  ## build and run the benchmarks
	@scripts/install_packages.sh build
	@scripts/bench.sh

calibrate:  ## make the accuracy table and its pictures again
	@scripts/install_packages.sh build test
	@scripts/build.sh release sliceplan-calibrate
	@scripts/accuracy.sh

format:  ## lay out the C++ files
	@scripts/install_packages.sh test
	@scripts/format.sh

coverage:  ## line coverage of the tests, per file
	@scripts/install_packages.sh build test
	@scripts/coverage.sh

clean:  ## remove everything built
	rm -rf build tools/node_modules

binaries:
	@scripts/install_packages.sh build
	@scripts/build.sh release sliceplan sliceplan-server
