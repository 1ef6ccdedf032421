#!/bin/sh
# Measures the provider `vulkan` on a machine with a GPU, in at most eight minutes: run.sh BUILD OUT [arguments of run.py]
# BUILD: a folder with bin/sdx, its libraries and bin/sdx_vulkan_tests, which may have been built elsewhere. OUT: a folder for the results.
# Needs Python with numpy and onnx, which make the models; PyTorch and ncnn are compared with where they are installed, and ONNX Runtime's
# WebGPU plugin where sdx finds it. The GPU's driver must offer Vulkan: `sdx providers` says what is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec timeout 480 python3 -B "$here/run.py" "$@"
