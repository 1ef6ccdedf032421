#pragma once
// The functions of libsdx_train.so for the command of the same build, which loads it when `sdx train` runs. They throw
// sdx::Error.

#include <cstddef>

#include "base/module/module.h"
#include "train/loop/request.h"

namespace sdx::train::loop {

struct Tools {
  static constexpr ModuleName kModule{"libsdx_train.so.0", "sdx_train_loop_tools", "SDX_TRAIN_LIB", "sdx train"};
  static constexpr std::size_t kTypesBytes = sizeof(Request);

  ModuleHead head;

  // Throws Error(invalid_argument) for values that make no sense together or alone; looks at no file.
  void (*check)(const Request&);
  // Returns the exit code: 0; 130 (Ctrl-C) or 143 (SIGTERM) after an interrupt.
  int (*run)(const Request&, const Console&);
};

}  // namespace sdx::train::loop
