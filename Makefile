# The two commands of the README, and shortcuts. CMake does the work: see CMakePresets.json.
PRESET ?= release
BUILD := build/$(PRESET)

# Tests that sanitizer builds skip; `make test` runs all of them:
# - tests that count to millions, or compute on large pictures and texts, and take a minute each without optimisation;
# - tests that fork while other threads are busy: Clang 16's AddressSanitizer does not hold its allocator's locks across fork(), so the
#   child can wait forever.
# - tests whose child loads damaged libraries, and which a sanitizer ends in its own way.
SLOW_UNDER_SANITIZERS := -Loop.EndlessLoops*:Functions.ExponentialExpansion*:Reader.CapturesAreCounted:Gradient.NestedWithoutEnd*:Diff.IsQuiet*:Crop.FromThePartThatItNeeds*:RecordedFaces.YunetFinds*:RecordedFaces.AllFaces*:Scanners.LongRuns*:Utf8.EveryCharacter*:Scanners.Agree*:RecordedTokenizers.Cases:Tokenizer.LongTexts*:Tokenizer.HostileNormalizers*:*Engines.Greedy*:*Stories.Greedy*/1:*Stories.Greedy*/2:FailingSteps.*:GrowingStories.*:PagedGraphs.CachesStay*:Engine.ItGoesOn*:ArrayProcesses.*:BlockKeepOfPosix.Children*:Look*

.PHONY: help setup python-env runtimes clients clients-large browser bare-root build everything wheel static portable portable-wheels portable-check dropin-wheel dropin-clients packages packages-check test test-poisoned \
  demo demo-chat install docs guides format format-check tidy check-includes check-sizes growth asan asan-all slow-under-sanitizers aarch64 aarch64-quick bench-aarch64 windows windows-zip \
  other-systems all-systems gpu-software \
  bench bench-package bench-accuracy bench-check bench-keep bench-operators bench-kernels bench-bridge bench-faces bench-text bench-serve \
  bench-arrays bench-install bench-outside bench-quantize bench-training torch-layers imports clean

help:
	@echo "make demo    install missing packages, build, detect a face in a photograph"
	@echo "make demo-chat  fetch a small language model and ask it a question"
	@echo "make test    install missing packages, build, run all tests"
	@echo "make build   build build/$(PRESET)/bin/sdx     (PRESET=release|native|debug|asan|tsan|clang|fuzz); make everything: also libraries and tests"
	@echo "make install PREFIX=/usr/local"
	@echo "make wheel   build/wheel/*.whl: the Python package for Python 3.9 and newer"
	@echo "make portable | portable-wheels | portable-check  build/portable: for glibc 2.28 and newer (docs/design/portable.md)"
	@echo "make static  build/static-x86_64/bin/sdx: the command as one file for any Linux (docs/design/static.md); ARCH=aarch64: for 64-bit Arm"
	@echo "make dropin-wheel  build/dropin-wheel/*.whl: a package onnxruntime that computes with the wheel above"
	@echo "make packages  build/packages/: Debian's packages, an archive, wheels, checksums; make packages-check tests them in a bare Debian"
	@echo "make dropin-clients  compare published packages on ONNX Runtime and on Sardonyx: results, start, time, memory; DROPIN=\"--rounds 1 magika\" runs a part"
	@echo "make clients-large  install the published packages that need much beside themselves (chromadb, mlx-lm, optimum), for ctest -L clients"
	@echo "make docs    regenerate docs/operators.md, docs/options.md and other files from tables in the code, and figures from bench/results"
	@echo "make guides  follow docs/add-*.md in a clone: an operator, a pass, a kernel, a provider, a subcommand, an architecture"
	@echo "make bench   compare with ONNX Runtime, OpenVINO, tract, MNN and ncnn; bench-accuracy: errors; bench-operators: single operators; bench-kernels: single kernels"
	@echo "make bench-keep  keep the current program; make bench-check: show what has become more than 3 % slower since"
	@echo "make torch-layers  compare all layers and losses of torch.nn with PyTorch; LAYERS=Embedding runs a part"
	@echo "make imports       import all pairs of the package's modules, and groups of them in threads at once"
	@echo "make other-systems | all-systems  build and test on Debian 13, on Debian 13 and sid (docs/building.md)"
	@echo "make gpu-software  test the provider vulkan on a software driver (docs/design/gpu.md)"
	@echo "make format | format-check | tidy | check-includes | check-sizes | growth | asan | asan-all | aarch64 | aarch64-quick | bench-aarch64 | windows | windows-zip | clean"

# Installs what the targets of the command line need (tools/setup.sh); SETUP=: leaves that to you. Targets that are not named here, and presets
# for tests, need all.
SETUP ?= tools/setup.sh
PURPOSE_demo := demo
PURPOSE_demo-chat := demo
PURPOSE_build := command
PURPOSE_install := command
PURPOSE_wheel := command python
PURPOSE_dropin-wheel := command python
PURPOSES := $(sort $(foreach goal,$(MAKECMDGOALS),$(or $(if $(filter-out release native debug demo,$(PRESET)),tests),$(PURPOSE_$(goal)),tests)))
setup:
	@$(SETUP) $(PURPOSES)

# The environment of the Python package's tests; skipped without a network connection.
python-env: | setup
	@tools/python_env.sh

# Vendors' libraries for the tests that need them; also skipped without a connection.
runtimes: | setup
	@tools/runtimes.sh
	@tools/lavapipe.sh

# Published programs that call ONNX Runtime, for tests/clients; also skipped without a connection.
clients: | setup
	@tools/clients_env.sh

# Those that need much beside themselves: 500 MB, and with PyTorch for GPUs 4 GB more. Not part of `make test`, which skips their tests.
clients-large: | setup
	@tools/clients_large_env.sh

# A browser for tests/faces/page_test.py, 100 MB: not part of `make test`, which skips that test without one.
browser: | setup
	@tools/browser.sh

# A bare Debian for the tests of the wheel; also skipped without a connection.
bare-root: | setup
	@tools/bare_root.sh

$(BUILD)/build.ninja: | setup
	cmake --preset $(PRESET)

# The command with all that it loads. `everything` has the libraries for other programs and the tests, too.
build: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target sdx_command

everything: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET)

# Downloads run while the compiler works. The second configuration finds the Python environment that the first may have lacked.
test: | setup
	$(MAKE) -j 5 python-env runtimes clients bare-root everything
	cmake --preset $(PRESET) -DSDX_COMPLETE=ON
	cmake --build --preset $(PRESET)
	ctest --test-dir $(BUILD) --output-on-failure -j 2

# Tests that open models, with uninitialised memory filled (docs/environment.md). Skips vendors' libraries, and tests that `make test` already
# runs this way.
test-poisoned: everything
	SDX_POISON=1 ctest --test-dir $(BUILD) --output-on-failure -j 2 -L '^(conformance|models|ops|passes|python|unit|cli|project|train)$$' -LE poisoned

# Builds only what the demo runs, and kernels for this machine alone: all of the command takes three times as long.
demo: | setup
	cmake --preset demo
	cmake --build --preset demo --target sdx_cli sdx_vision_library
	@tools/demo.sh build/demo

demo-chat: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target sdx_command
	@tools/demo_chat.sh $(BUILD)

PREFIX ?= /usr/local
install: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target sdx_installed
	cmake --install $(BUILD) --prefix $(PREFIX) --strip

# build/wheel/sardonyx-….whl, for Python 3.9 and newer.
wheel: python-env everything
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target sdx_python
	tools/wheel.sh $(BUILD) build/wheel

# The command as one file with musl, for any Linux of its processor, and its test in an empty root. ARCH: x86_64, aarch64 or all.
ARCH ?= x86_64
static:
	for arch in $(ARCH:all=x86_64 aarch64); do tools/static.sh $$arch || exit 1; done

# build/portable: the command, libraries and wheels for glibc 2.28 and newer (docs/design/portable.md), and their tests in old systems and new ones.
portable: python-env
	tools/portable_sources.sh
	cmake --preset portable
	cmake --build --preset portable --target sdx_portable

portable-wheels: portable
	tools/wheel.sh build/portable build/portable-wheel
	tools/dropin_wheel.sh build/portable build/portable-dropin-wheel

PORTABLE_SUITES := bullseye bookworm trixie
portable-check: portable-wheels
	tools/bare_root.sh $(PORTABLE_SUITES)
	for suite in $(PORTABLE_SUITES); do python3 -B tests/wheel/portable.py . build/portable $$suite || exit 1; done
	for suite in bullseye debian trixie; do \
	  PYTHONPATH=build/portable/python build/python-venv/bin/python -B tests/wheel/run.py . build/portable $$suite build/portable-wheel || exit 1; \
	done

# build/dropin-wheel/sardonyx_onnxruntime-….whl, which needs the wheel above.
dropin-wheel: wheel
	cmake --build --preset $(PRESET) --target sdx_dropin_library
	tools/dropin_wheel.sh $(BUILD) build/dropin-wheel

# build/packages/: Debian's packages, an archive that runs from any folder, a source package for pip, the wheels, what is inside them (SPDX),
# checksums and sizes (docs/design/packages.md).
packages: portable-wheels static
	@tools/install.sh packages zstd dpkg-dev
	cmake --preset debian
	cmake --build --preset debian --target sdx_installed sdx_python
	tools/packages.sh build/packages

# Tests of what `make packages` made, in a bare Debian: needs root, takes minutes. PACKAGES_CHECK="lintian deb" runs a part.
PACKAGES_CHECK ?=
packages-check:
	@tools/install.sh packages-check lintian debootstrap zstd
	tests/packages/root.sh build/systems/bookworm
	python3 -B tests/packages/run.py . build/packages build/systems/bookworm $(PACKAGES_CHECK)

# Runs published packages that contain models, and programs that open the C library, unchanged, on ONNX Runtime and on ours in turns; skipped
# without a connection. DROPIN="--rounds 1 magika" takes a part of the packages, NATIVE="sherpa" one of the programs.
DROPIN ?=
NATIVE ?=
dropin-clients: python-env everything
	@if tools/venv.sh build/packages-venv tests/clients/packages.txt --no-deps; then \
		python3 -B tests/clients/packages_in_turns.py $(BUILD)/dropin $(BUILD)/python $(DROPIN); \
	else \
		echo "dropin-clients: the packages of tests/clients/packages.txt cannot be installed (no connection to the package index?); skipped" >&2; \
	fi
	@if tools/venv.sh build/native-venv tests/clients/native.txt --no-deps; then \
		build/native-venv/bin/python -B tests/clients/native.py $(BUILD)/lib/sardonyx/libonnxruntime.so.1 $(BUILD)/bin/sdx $(NATIVE); \
	else \
		echo "dropin-clients: the packages of tests/clients/native.txt cannot be installed; skipped" >&2; \
	fi

docs: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target sdx_operators_doc sdx_options_doc
	$(BUILD)/bin/sdx_operators_doc >docs/operators.md.new && mv docs/operators.md.new docs/operators.md
	$(BUILD)/bin/sdx_options_doc .
	python3 -B bench/figures.py --write

# Whether passes take time in proportion to the graph: a few minutes, on a machine with little else to do.
growth: $(BUILD)/build.ninja
	cmake --build --preset $(PRESET) --target sdx_pass_growth
	ctest --test-dir $(BUILD) --output-on-failure -C Long -R '^passes\.growth$$'

asan:
	$(MAKE) PRESET=asan test

# All tests under address and undefined-behaviour sanitizers, including the Python package's tests and 20,000 models of fuzz_models: takes some
# hours. GTEST_FILTER skips the slow tests, as in .ci/run.
asan-all: python-env runtimes
	cmake --preset asan -DSDX_PYTHON_SANITIZED=ON
	cmake --build --preset asan
	ASAN_SYMBOLIZER_PATH=$$(tools/clang.sh llvm-symbolizer) SDX_TEST_ISA=$${SDX_TEST_ISA:-avx2} GTEST_FILTER=$(SLOW_UNDER_SANITIZERS) \
		ctest --test-dir build/asan --output-on-failure -j 2 --timeout 14400
	ctest --test-dir build/asan --output-on-failure --timeout 86400 -C Long -R '^fuzz\.more$$'

# Base and engine on Debian 13; on Debian 13 and sid all unit tests and the demo, with GCC and Clang.
other-systems:
	@tools/other_systems.sh

all-systems:
	@tools/other_systems.sh all

# The provider vulkan on a software driver: also ONNX's test data, which takes minutes.
gpu-software: | setup
	@tools/lavapipe.sh
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target sdx_cli sdx_vulkan_tests sdx_conformance
	ctest --test-dir $(BUILD) --no-tests=error --output-on-failure -C Long -L '^vulkan$$'

# For .ci/run.
slow-under-sanitizers:
	@echo '$(SLOW_UNDER_SANITIZERS)'

# 64-bit Arm under QEMU (docs/design/aarch64.md): all that is tested, which takes an hour to build on two cores; a part that takes minutes; and
# counts of instructions.
aarch64:
	@tools/aarch64.sh
aarch64-quick:
	@tools/aarch64.sh quick
bench-aarch64:
	@tools/aarch64.sh bench

# 64-bit Windows by mingw-w64, tested under Wine (docs/design/windows.md).
windows:
	@tools/windows.sh

# The command for 64-bit Windows in one archive (docs/windows.md).
windows-zip:
	@tools/windows_zip.sh build/windows-zip

# clang-tidy; SINCE=COMMIT looks at what changed since then alone, MINUTES=N begins no source after that time.
tidy: | setup
	@python3 -B tools/tidy.py "$(SINCE)" "$(MINUTES)"

# Benchmarks (bench/README.md). BENCH goes to the script and chooses a part; `--help` of the script explains it.
BENCH ?=
BENCH_PYTHON = PYTHONPATH=$(BUILD)/python build/bench-venv/bin/python -B

# The Python package, also where the first configuration lacked its environment, and the peers of bench/suite.
bench-package: python-env everything
	tools/venv.sh build/bench-venv bench/suite/requirements.txt
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target sdx_python

# Whole models beside their peers, BENCH="--models resnet50 --threads 1"; errors relative to float64; single operators.
bench: SCRIPT = run
bench-accuracy: SCRIPT = accuracy
bench-operators: SCRIPT = operators
bench bench-accuracy bench-operators: bench-package
	$(BENCH_PYTHON) bench/suite/$(SCRIPT).py $(BENCH)

# Networks that PyTorch exports, beside ONNX Runtime and OpenVINO; BENCH="--only timm,unet" chooses some.
bench-outside: BENCH := $(or $(BENCH),--int8)
bench-outside: bench-package
	tools/venv.sh build/outside-venv bench/outside/requirements.txt
	build/outside-venv/bin/python -B bench/outside/export.py build/outside-models $(BENCH)
	$(BENCH_PYTHON) bench/suite/run.py --engines sdx,onnxruntime,openvino --starts 1 --out build/outside \
	  --models "$$(ls build/outside-models/*.onnx | paste -sd,)"

# bench-keep keeps the current program, with which bench-check compares later ones. BASE=OTHER/bin/sdx names another program.
KEPT := build/bench-base
BASE ?= $(KEPT)
bench-keep: everything
	rm -rf $(KEPT).new && mkdir -p $(KEPT).new/bin && cp $(BUILD)/bin/sdx $(KEPT).new/bin/ && cp -a $(BUILD)/lib $(KEPT).new/lib
	rm -rf $(KEPT) && mv $(KEPT).new $(KEPT)

bench-check: everything
	tools/venv.sh build/bench-venv bench/suite/requirements.txt
	build/bench-venv/bin/python -B bench/suite/check.py $(BASE) $(BUILD)/bin/sdx $(BENCH)

# A folder of bench/ each, with the peers in an environment of its own.
FOLDERS := bench-arrays bench-faces bench-quantize bench-text bench-training
CHAT_MODEL := $(BUILD)/demo/SmolLM2-135M-Instruct.Q4_1.gguf
$(CHAT_MODEL): | build
	tools/demo_chat.sh $(BUILD)

bench-text: | $(CHAT_MODEL)
bench-faces bench-text bench-training: OWN = --sdx $(BUILD)/bin/sdx
bench-training: OWN += --peer-python build/bench-training-venv/bin/python --folder $(BUILD)/bench-training
$(FOLDERS): bench-%: python-env everything
	tools/venv.sh build/bench-$*-venv bench/$*/requirements.txt
	PYTHONPATH=$(BUILD)/python $(or $(BENCH_INTERPRETER),build/bench-$*-venv/bin/python) -B bench/$*/run.py $(OWN) $(BENCH)
# PyTorch is Debian's python3-torch.
bench-training: BENCH_INTERPRETER = /usr/bin/python3

# `sdx serve` beside MLServer, Ray Serve and BentoML; BENCH="--models tiny --rounds 1" runs a part.
bench-serve: everything | $(CHAT_MODEL)
	for peer in mlserver ray bentoml; do tools/venv.sh build/bench-$$peer-venv bench/serve/peers/$$peer.txt || exit 1; done
	python3 -B bench/serve/peers.py --sdx $(BUILD)/bin/sdx --gguf $(CHAT_MODEL) $(BENCH)

# From an empty machine to the first answer, and builds from nothing: BENCH="--system trixie --way demo test" (bench/install/run.py). Needs root.
bench-install:
	@tools/install.sh bench-install debootstrap
	python3 -B bench/install/run.py $(BENCH)

# Programs of C++: single kernels, and the bridge to ONNX Runtime's library.
bench-bridge: | runtimes
bench-kernels bench-bridge: bench-%: everything
	cmake --preset $(PRESET) -DSDX_BUILD_BENCH=ON
	cmake --build --preset $(PRESET) --target sdx_bench_$*
	SDX_ORT_LIB=$$(ls build/runtimes/ort-newest/onnxruntime/capi/libonnxruntime.so* 2>/dev/null) $(BUILD)/bin/sdx_bench_$* $(BENCH)

# All layers and losses of torch.nn through sardonyx.torch, compared with PyTorch; LAYERS="Embedding" runs a part, TORCH_PYTHON is an
# interpreter that has PyTorch.
LAYERS ?=
TORCH_PYTHON ?= /usr/bin/python3
torch-layers: python-env everything
	PYTHONPATH=$(BUILD)/python $(TORCH_PYTHON) -B tests/python/torch_layers.py --all $(LAYERS)

# All pairs of the package's modules in both orders, and 500 groups of them in threads at once; the tests take a share.
imports: python-env everything
	PYTHONPATH=$(BUILD)/python build/python-venv/bin/python -B tests/python/test_imports.py

format:
	@formatter=$$(tools/clang_format.sh) && git ls-files '*.cc' '*.h' '*.hpp' | xargs "$$formatter" -i

format-check:
	@formatter=$$(tools/clang_format.sh) && git ls-files '*.cc' '*.h' '*.hpp' | xargs "$$formatter" --dry-run -Werror

check-includes:
	python3 tools/check_includes.py

check-sizes:
	python3 tools/check_sizes.py

# Follows docs/add-*.md in a clone of what is committed: their changes, a build, their commands. Takes as long as a first build.
GUIDES := build/guides
guides: | setup
	rm -rf $(GUIDES) && git clone -q . $(GUIDES)
	cd $(GUIDES) && python3 -B tests/docs/guides.py apply && $(MAKE) build && python3 -B tests/docs/guides.py follow
	rm -rf $(GUIDES)

clean:
	rm -rf build
