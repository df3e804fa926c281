# Every job of the project. `make run` and `make test` are all that a fresh Debian or Ubuntu machine with Rust needs.

.PHONY: mlir check-mlir help run test build lint bench fuzz measure oracles check-corpus check-aarch64 check-full deps clean

ORACLES ?= $(CURDIR)/.oracles/tools
CORPUS  ?= $(CURDIR)/.oracles/corpus
SM      ?= sm_87
PROGRAM := target/release/sass2mlir
export CARGO_TERM_COLOR ?= auto

help:
	@echo "make run           build, then round-trip, lift and rewrite a bundled $(SM) cubin, and show the result"
	@echo "make test          every test that needs nothing but Rust and a C++ compiler"
	@echo "make build         target/release/sass2mlir"
	@echo "make lint          rustfmt and clippy, warnings are errors"
	@echo "make check-corpus  bring NVIDIA's tools and real kernels, then run the gates over them"
	@echo "make check-aarch64 cross-build for the Jetson's processor and run it under emulation"
	@echo "make check-full    all of the above"
	@echo "make bench         throughput, next to nvdisasm where make oracles brought it"
	@echo "make mlir          sass-opt and libSassDialectPlugin.so in target/release (needs LLVM 22)"
	@echo "make check-mlir    tests of the MLIR dialect and its bridge"
	@echo "make fuzz          coverage-guided fuzzing, a minute a target"
	@echo "make measure       size, time and peak memory of the release build for one target"

deps:
	@tests/scripts/deps.sh

build: deps
	cargo build --release

run: build
	@tests/scripts/show.sh $(PROGRAM) tests/kernels/$(SM)/own_mul_mat.cubin $(SM)

test: deps
	@tests/scripts/test.sh

lint: deps
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: deps
	@PATH="$(ORACLES)/bin:$$PATH" cargo bench --workspace

measure: deps
	@tests/scripts/measure.sh $(SM)

oracles:
	@tests/scripts/deps.sh python
	@tests/oracles/setup.sh "$(ORACLES)"
	@tests/oracles/corpora.sh "$(ORACLES)" "$(CORPUS)"

check-corpus: oracles
	cargo build --release --package sass2mlir-probe
	target/release/probe check --sm $(SM) --nvdisasm "$(ORACLES)/bin/nvdisasm"
	target/release/probe check-access --sm $(SM) --nvdisasm "$(ORACLES)/bin/nvdisasm"
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-access-kernels --sm $(SM) --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-flow --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	find "$(CORPUS)" tests/kernels -name '*.cubin' -exec target/release/probe check-live --nvdisasm "$(ORACLES)/bin/nvdisasm" {} +
	SASS_ORACLES="$(ORACLES)" SASS_CORPUS="$(CORPUS)" \
	  cargo test --release --package sass2mlir --features corpus-checks --test corpus --test model -- --nocapture --test-threads 1

check-aarch64: deps
	@tests/scripts/aarch64.sh

check-full: lint test check-corpus check-aarch64 bench

fuzz: deps
	@tests/scripts/fuzz.sh

clean:
	cargo clean

# The MLIR dialect. The C++ is built by src/mlir's build script; this goes on in the same folder.
DIALECT := target/dialect/build

mlir: deps
	cargo build --release --package sass2mlir-mlir --features mlir
	cargo rustc --release --package sass2mlir-engine --crate-type staticlib
	cmake -S dialect -B $(DIALECT) -DSASS_ENGINE_LIB="$(CURDIR)/target/release/libsass2mlir_engine.a"
	cmake --build $(DIALECT) --target sass-opt SassDialectPlugin SassDropFtz
	cp $(DIALECT)/sass-opt $(DIALECT)/libSassDialectPlugin.so $(DIALECT)/SassDropFtz.so target/release/

check-mlir: mlir build
	cargo test --release --package sass2mlir-mlir --features mlir
	SASS_TOOLS="$(CURDIR)/target/release" SASS_PROGRAM_DIR="$(CURDIR)/target/release" SASS_LIT_OUT="$(CURDIR)/target/lit" \
	  $${MLIR_SYS_220_PREFIX:-/usr/lib/llvm-22}/bin/lit -sv lit
