#!/bin/sh
# The example in C trains a perceptron, from artifacts of ONNX Runtime: the loss falls, and the exported model runs.
set -eu
example=$1
sdx=$2
artifacts="${SDX_TEST_MODELS:-none}/training/mlp_adamw"
[ -d "$artifacts" ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$example" "$artifacts" "$artifacts/checkpoint" 784 10 60 "$folder/model.onnx" logits | tee "$folder/said"
"$sdx" checkpoint show "$folder/model.onnx.trained" | grep 'optimizer group0: 60 steps'
"$sdx" run "$folder/model.onnx" --random --dim N=2 | grep 'float32'
awk '/^step 0:/ {first = $4} /^on a batch/ {last = $7} END {exit !(last + 0 < first / 20)}' "$folder/said"
