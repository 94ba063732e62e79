# The front door. The builds themselves are in CMakePresets.json; this needs only make and a
# shell to begin with, and scripts/deps brings the rest on Debian.
#
#   make                 build/release/ebb, the library, the examples, the tests; build/wasm/web, the npm package
#   make run             build and start ebb serve with a shop, and print where to look at it; Ctrl-C stops it
#   make tour            build and run the tour: five chapters that show the phases move
#   make test            every test but the soak
#   make wasm            build/wasm/web/ebb-web, the npm package, and the pages beside it
#   make aarch64         cross-built for AArch64 with Debian's compiler and arm64 packages: the tests of the layers
#                        below loop, and of lab, under qemu-user
#   make playground      the page on which regions, tasks and cancels can be seen and clicked
#   make soak            the soak: model, lab, replay, heap, workflows and HTTP for longer, EBB_SOAK_SECONDS
#                        (60) each; ST-01 to ST-04 as long as their source says; a million requests
#   make h2spec          h2spec, strict, against the HTTP server, where Go is at hand; RUNS=10 for ten in a row
#   make install         libebb.so, libebb.a, headers and the command, below PREFIX (/usr/local) and DESTDIR;
#                        needs a C compiler, CMake, Ninja, pkg-config and the libraries only
#   make deb             Debian packages in build/deb: linted, and tried in a clean root (docs/install.md)
#   make st              of the soak, ST-01 to ST-04 alone, as long as their source says
#   make DEPS=: ...      look for no packages: you bring your own tools

PREFIX ?= /usr/local
DESTDIR ?=
DEPS ?= scripts/deps
export EBB_SOAK_SECONDS ?= 60
export EBB_FUZZ_SECONDS ?= 60

# Where Debian keeps llvm-symbolizer, without which a TSan report has no names.
export PATH := $(PATH):/usr/lib/llvm-14/bin

# TSan of Clang 14 can't live with the address space randomisation of newer kernels.
NO_ASLR = $(shell setarch -R true 2>/dev/null && echo setarch -R)

C_FILES = $(shell find . \( -path ./build -o -name node_modules -o -name .git \) -prune \
    -o -name '*.[ch]' -print | sort)
SHELL_SCRIPTS = $(shell grep -lE '^\#!.*\bbash\b' scripts/* .ci/*)

build = cmake --preset $(1) && cmake --build --preset $(1)

.PHONY: all run tour test soak st bench bench-peers asan tsan fuzz lint format docs install clean wasm clang aarch64 \
    playground h2spec deb
.NOTPARALLEL:

all:
	$(DEPS) build test clang
	$(call build,wasm)
	$(call build,release)

run:
	$(DEPS) build
	$(call build,run)
	@exec scripts/run build/run

tour:
	$(DEPS) build test
	$(call build,release) --target example_tour
	build/release/examples/tour

test: all
	$(DEPS) web
	ctest --preset release

soak: all
	ctest --preset soak

st: all
	ctest --preset st

h2spec:
	$(DEPS) build test
	$(call build,release) --target http_test_server
	scripts/h2spec $(RUNS)

playground:
	$(DEPS) build clang
	$(call build,wasm)
	$(call build,release) --target ebb_cli
	scripts/playground

bench:
	$(DEPS) build test clang bench
	$(call build,wasm)
	$(call build,bench)
	build/bench/bench/ebb-bench build/bench.jsonl
	bench/web/run.mjs --native build/bench/bench/web-native build/bench.jsonl
	bench/http/run.py --bin build/bench/bench/http build/bench.jsonl
	bench/http/loops.py build/bench build/bench.jsonl

bench-peers:
	$(DEPS) build test bench
	$(call build,release)
	scripts/bench-peers

asan:
	$(DEPS) build test
	$(call build,asan)
	scripts/sanitizer-tests asan

tsan:
	$(DEPS) build test clang
	$(call build,tsan)
	$(NO_ASLR) scripts/sanitizer-tests tsan

clang:
	$(DEPS) build test clang
	$(call build,clang)
	ctest --preset clang

aarch64:
	$(DEPS) build test aarch64
	scripts/aarch64-root build/aarch64-root
	$(call build,aarch64)
	ctest --preset aarch64

fuzz:
	$(DEPS) build clang
	$(call build,fuzz)
	scripts/fuzz

wasm:
	$(DEPS) build clang
	$(call build,wasm)

lint:
	$(DEPS) build test clang lint
	scripts/check-layers
	clang-format-14 --dry-run -Werror $(C_FILES)
	shellcheck $(SHELL_SCRIPTS)
	cmake --preset lint
	run-clang-tidy-14 -quiet -p build/lint
	cmake --preset wasm
	run-clang-tidy-14 -quiet -p build/wasm "$(CURDIR)/web/"

format:
	$(DEPS) lint
	clang-format-14 -i $(C_FILES)

docs:
	$(DEPS) test
	scripts/check-docs

install:
	$(DEPS) install
	cmake --preset install -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build --preset install
	DESTDIR=$(DESTDIR) cmake --install build/install

deb:
	$(DEPS) install deb
	scripts/deb

clean:
	rm -rf build
