#include <sdx/export.hpp>

#include "vision/batch/batch.h"
#include "vision/batch/bench.h"
#include "vision/batch/find_detector.h"
#include "vision/batch/settings.h"
#include "vision/batch/tools.h"

namespace sdx::vision {
namespace {

void check(const Request& request) { static_cast<void>(batch::parse(request)); }

constexpr Tools kTools{
    .head = module_head<Tools>(SDX_VERSION),
    .check = check,
    .check_bench = batch::check_bench,
    .find_detector = batch::find_detector,
    .run = batch::run,
    .bench = batch::bench,
};

}  // namespace
}  // namespace sdx::vision

extern "C" SDX_API const sdx::ModuleHead* sdx_vision_tools() { return &sdx::vision::kTools.head; }
