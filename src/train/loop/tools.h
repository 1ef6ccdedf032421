#pragma once
// What libsdx_train.so offers to the command of the same build, which loads it when `sdx train` runs. Functions throw sdx::Error.

#include <cstddef>

#include "train/loop/request.h"

namespace sdx::train::loop {

inline constexpr int kToolsVersion = 1;

struct Tools {
  int version;                // kToolsVersion
  std::size_t request_bytes;  // sizeof(Request): what another build would pass another way
  const char* release;        // SDX_VERSION

  // Throws Error(invalid_argument) for values that make no sense together or alone; looks at no file.
  void (*check)(const Request&);
  // Returns the exit code: 0; 130 (Ctrl-C) or 143 (SIGTERM) after an interrupt.
  int (*run)(const Request&, const Console&);
};

}  // namespace sdx::train::loop

extern "C" {
// The symbol sdx_train_loop_tools.
using SdxTrainLoopToolsFunction = const sdx::train::loop::Tools* (*)();
}
