#pragma once
// The functions of libsdx_vision.so for the command of the same build, which loads it when `sdx faces` runs. They throw
// sdx::Error.

#include <cstddef>
#include <filesystem>

#include "base/module/module.h"
#include "vision/batch/request.h"

namespace sdx::vision {

struct Tools {
  static constexpr ModuleName kModule{"libsdx_vision.so.0", "sdx_vision_tools", "SDX_VISION_LIB", "sdx faces"};
  static constexpr std::size_t kTypesBytes = sizeof(Request);

  ModuleHead head;

  // Throws Error(invalid_argument) for values that make no sense together or alone; looks at no file.
  void (*check)(const Request&);
  void (*check_bench)(const Request&);
  // The detector to use where none was named: see find_detector(). Throws Error(io) that says how to get one.
  std::filesystem::path (*find_detector)();
  // Returns the exit code.
  int (*run)(const Request&, const Console&);
  int (*bench)(const Request&, const Console&);
};

}  // namespace sdx::vision
