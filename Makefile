# SPDX-License-Identifier: Apache-2.0
# Plain names for what meson, ninja and scripts/ do; `make help` lists them.
MODEL ?= qwen2.5-coder-0.5b
PROMPT ?= What is the capital of France? Answer in one sentence.
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

deps: ## install the Debian packages that are missing
	@scripts/deps

build: deps ## optimized binary: build/src/cli/1bit
	@[ -f build/build.ninja ] || meson setup build
	@ninja -C build src/cli/1bit

run: build ## build, fetch the default model, ask it a question
	@scripts/fetch-model $(MODEL) >/dev/null
	@./build/src/cli/1bit run -m $(MODEL) -p "$(PROMPT)"

test: ## every test
	@scripts/test

lint: ## the rules of the tree: layers, lists, static analysis
	@scripts/lint

bench: build ## prompt and decode speed of MODEL
	@scripts/fetch-model $(MODEL) >/dev/null
	@./build/src/cli/1bit bench -m $(MODEL)

docs: ## make docs/models.md of the lists and of what 1bit-check says
	@[ -f build/build.ninja ] || meson setup build
	@ninja -C build src/cli/1bit tests/check/1bit-check
	@tools/make_models_doc.py

fuzz: ## every fuzzer for FUZZ_SECONDS
	@scripts/fuzz $(FUZZ_SECONDS)

gpu-all: ## every CUDA kernel for all GPUs, within its budget (needs nvcc); run where there is a GPU
	@scripts/gpu

mutate: ## break the code on purpose; the tests must notice
	@scripts/mutate

install: build ## install to PREFIX=/usr/local (DESTDIR is honoured)
	@meson configure build -Dprefix="$(PREFIX)"
	@meson install -C build

clean: ## remove what was built
	rm -rf build build-*

.PHONY: help deps build run test lint bench docs fuzz gpu-all mutate install clean
