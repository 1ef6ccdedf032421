#include "onnx/given_data.h"

namespace sdx {
namespace {

thread_local const GivenData* t_given = nullptr;

}  // namespace

GivenDataScope::GivenDataScope(const GivenData& data) noexcept : outer_(t_given) { t_given = &data; }
GivenDataScope::~GivenDataScope() { t_given = outer_; }

const GivenData* given_data() noexcept { return t_given; }

}  // namespace sdx
