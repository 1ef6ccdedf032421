// A file of its own: it is compiled anew with every change to the engine.

#include "cli/doctor/facts.h"

namespace sdx::cli::doctor {

std::string_view own_build() noexcept {
  return
#include "build_id.cc.inc"
      ;
}

}  // namespace sdx::cli::doctor
