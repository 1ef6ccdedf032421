#include "support/test_module.h"

namespace {

using sdx::ModuleHead;

int answer() { return 42; }

constexpr ModuleHead kHead = sdx::module_head<sdx::TestModule>(SDX_VERSION);
constexpr sdx::TestModule kGood{kHead, answer};
constexpr ModuleHead kOtherRelease{kHead.magic, "0.0.1", kHead.table_bytes, kHead.types_bytes};
constexpr ModuleHead kOtherMagic{1, kHead.release, kHead.table_bytes, kHead.types_bytes};
constexpr ModuleHead kShortTable{kHead.magic, kHead.release, sizeof(ModuleHead), kHead.types_bytes};
constexpr ModuleHead kOtherTypes{kHead.magic, kHead.release, kHead.table_bytes, 1};

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const ModuleHead* sdx_test_module() { return &kGood.head; }
__attribute__((visibility("default"))) const ModuleHead* sdx_test_other_release() { return &kOtherRelease; }
__attribute__((visibility("default"))) const ModuleHead* sdx_test_other_magic() { return &kOtherMagic; }
__attribute__((visibility("default"))) const ModuleHead* sdx_test_short_table() { return &kShortTable; }
__attribute__((visibility("default"))) const ModuleHead* sdx_test_other_types() { return &kOtherTypes; }
}
