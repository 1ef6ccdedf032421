#include <sdx/export.hpp>

#include "train/loop/run.h"
#include "train/loop/settings.h"
#include "train/loop/tools.h"

namespace sdx::train::loop {
namespace {

void check(const Request& request) { static_cast<void>(settings_of(request)); }

constexpr Tools kTools{
    .head = module_head<Tools>(SDX_VERSION),
    .check = check,
    .run = run,
};

}  // namespace
}  // namespace sdx::train::loop

extern "C" SDX_API const sdx::ModuleHead* sdx_train_loop_tools() { return &sdx::train::loop::kTools.head; }
