#pragma once
// A module for tests of loading, and variants of it that must not be loaded.

#include "base/module/module.h"

namespace sdx {

struct TestModule {
  static constexpr std::size_t kTypesBytes = 8;

  ModuleHead head;
  int (*answer)();
};

}  // namespace sdx
