#pragma once
// Our own engine.

#include <span>
#include <string_view>

#include "providers/interface/provider.h"

namespace sdx::cpu {

// Takes every node whose operator exists in this build. Kernels are tried in the order of the kernel table; the reference kernel
// runs what no fast kernel accepts. SDX_CPU_KERNEL=reference (or another kernel's name) leaves out all others, for tests and
// comparisons.
const Provider& provider();
// The provider where `name` is "cpu", else null.
const Provider* find(std::string_view name);

// Options of ONNX Runtime's CPU provider, all about its allocator: accepted for programs written for it, without any effect here.
std::span<const std::string_view> ignored_options();

}  // namespace sdx::cpu
