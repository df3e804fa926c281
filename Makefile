# Every job of the project. `make run` and `make test` are all that a fresh Debian or Ubuntu machine with Rust needs.

.PHONY: help run test build lint bench fuzz measure measure-mlir oracles check-corpus check-passes check-targets check-sample check-aarch64 check-full deps clean

ORACLES ?= $(CURDIR)/.oracles/tools
CORPUS  ?= $(CURDIR)/.oracles/corpus
OWN     ?= $(CURDIR)/.oracles/own
SM      ?= sm_87
SMS     ?= 86,87,88
SIZE    ?= small
PROGRAM := target/release/sass2mlir
export CARGO_TERM_COLOR ?= auto

help:
	@echo "make run           build, then round-trip, lift and rewrite a bundled $(SM) cubin, and show the result"
	@echo "make test          every test that needs nothing from NVIDIA"
	@echo "make build         sass2mlir, sass-opt and libSassDialectPlugin.so in target/release"
	@echo "make lint          rustfmt and clippy, warnings are errors"
	@echo "make check-corpus  bring NVIDIA's tools and real kernels, then run the gates over them; SMS=all SIZE=full brings most"
	@echo "make check-passes  what passes bring by the estimates, and that they change no result"
	@echo "make check-targets its gates on round trip, texts and assembler alone, target by target"
	@echo "make check-sample  bring NVIDIA's tools, compare the texts of some random words of every form of all targets"
	@echo "make check-aarch64 cross-build for the Jetson's processor and run it under emulation"
	@echo "make check-full    all of the above"
	@echo "make bench         throughput, next to nvdisasm where make oracles brought it"
	@echo "make fuzz          coverage-guided fuzzing, a minute a target"
	@echo "make measure       size, time and peak memory of the release build for one target, or for SM=all"
	@echo "make measure-mlir  time and peak memory of the default build, also after a change of a pass; speed of the bridge"

deps:
	@tests/scripts/deps.sh mlir

build: deps
	cargo build --release $$(tests/scripts/features.sh)
	@tests/scripts/tools.sh release

run: build
	@tests/scripts/show.sh $(PROGRAM) tests/kernels/$(SM)/own_mul_mat.cubin $(SM)

test: deps
	@tests/scripts/test.sh

lint: deps
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $$(tests/scripts/features.sh) -- -D warnings
	cargo clippy --package sass2mlir --all-targets --no-default-features --features internal-ir -- -D warnings

bench: deps
	@SASS_ORACLES="$${SASS_ORACLES:-$(ORACLES)}" cargo bench --workspace

measure: deps
	@tests/scripts/measure.sh $(SM)

measure-mlir: deps
	@tests/scripts/measure-mlir.sh

oracles:
	@tests/scripts/deps.sh python
	@tests/oracles/setup.sh "$(ORACLES)"
	@tests/oracles/corpora.sh "$(ORACLES)" "$(CORPUS)" "$(SMS)" "$(SIZE)"

check-corpus: oracles
	cargo build --release --package sass2mlir-probe
	target/release/probe check --sm all --nvdisasm "$(ORACLES)/bin/nvdisasm"
	target/release/probe check-access --sm $(SM) --nvdisasm "$(ORACLES)/bin/nvdisasm"
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-access-kernels --sm $(SM) --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-flow --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-live --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	target/release/probe check-hazards "$(CORPUS)" tests/kernels
	target/release/probe check-repair "$(CORPUS)" tests/kernels
	target/release/probe check-assign "$(CORPUS)" tests/kernels
	cargo build --release --package sass2mlir $$(tests/scripts/features.sh)
	tests/scripts/largest.py "$(PROGRAM)" "$(CORPUS)"
	@tests/oracles/own.sh "$(ORACLES)" "$(OWN)"
	SASS_ORACLES="$(ORACLES)" SASS_CORPUS="$(CORPUS)" SASS_OWN="$(OWN)" \
	  cargo test --release --package sass2mlir $$(tests/scripts/features.sh) --features corpus-checks --test corpus --test model -- --nocapture --test-threads 1
	$(MAKE) check-passes
	$(MAKE) check-targets
	@[ -n "$$(tests/scripts/features.sh)" ] || SASS_MLIR_CORPUS="$(CORPUS):$(OWN)/kernels" \
	  cargo test --release --package sass2mlir-mlir --features mlir --test roundtrip -- --nocapture

check-passes: oracles
	SASS_ORACLES="$(ORACLES)" SASS_CORPUS="$(CORPUS)" \
	  cargo test --release --package sass2mlir $$(tests/scripts/features.sh) --features corpus-checks --test passes -- --nocapture

check-targets: oracles
	cargo build --release --package sass2mlir-probe
	@tests/oracles/own.sh "$(ORACLES)" "$(OWN)"
	SASS_ORACLES="$(ORACLES)" SASS_CORPUS="$(CORPUS)" SASS_OWN="$(OWN)" \
	  cargo test --release --package sass2mlir $$(tests/scripts/features.sh) --features corpus-checks --test targets -- --nocapture
	@tests/oracles/assemblers.sh "$(ORACLES)" "$(CORPUS)" "$(OWN)"
	@[ ! -x "$(ORACLES)/assemblers/bin/basalt" ] || python3 tests/oracles/schedulers.py --tools "$(ORACLES)" --program $(PROGRAM) \
	  --basalt "$(ORACLES)/assemblers/bin/basalt" --sample 6 tests/kernels/emu/*.cu
	SASS_EMU_KERNELS="$(OWN)/emu" cargo test --release --package sass2mlir-emu --test host -- --nocapture
	SASS_EMU_KERNELS="$(OWN)/emu" SASS_TIMING_EVERY=13 cargo test --release --package sass2mlir-engine --test timing -- --nocapture

check-sample:
	@tests/scripts/sample.sh "$(ORACLES)"

check-aarch64: deps
	@tests/scripts/aarch64.sh

check-full: lint test check-corpus check-aarch64 bench

fuzz: deps
	@tests/scripts/fuzz.sh

clean:
	cargo clean
