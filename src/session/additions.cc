#include "session/additions.h"

#include "base/error.h"

namespace sdx::session {
namespace {

thread_local Additions* t_additions = nullptr;

}  // namespace

AdditionsScope::AdditionsScope(Additions& additions) noexcept : outer_(t_additions) { t_additions = &additions; }
AdditionsScope::~AdditionsScope() { t_additions = outer_; }

const GivenData* given_data() noexcept { return t_additions != nullptr ? &t_additions->data : nullptr; }

std::shared_ptr<ThreadPool> given_pool() noexcept { return t_additions != nullptr ? t_additions->pool : nullptr; }

const WriteOptions* given_write_options() noexcept {
  return t_additions != nullptr && !t_additions->optimized_model.external_name.empty() ? &t_additions->optimized_model : nullptr;
}

std::uint64_t* wanted_optimized_bytes() noexcept { return t_additions != nullptr ? t_additions->optimized_bytes : nullptr; }

Additions* additions() noexcept { return t_additions != nullptr && !t_additions->empty() ? t_additions : nullptr; }

bool replace_initializers(Graph& graph, const Additions& additions) {
  bool changed = false;
  for (const auto& [name, tensor] : additions.initializers) {
    const std::optional<ValueId> id = graph.find(name);
    if (!id || !graph.value(*id).constant) continue;
    Tensor& held = *graph.value(*id).constant;
    if (held.dtype() != tensor.dtype() || held.shape() != tensor.shape()) {
      fail(ErrorCode::invalid_argument, "initializer '{}' of the model is {}; its replacement is {}", name, held.type_string(),
           tensor.type_string());
    }
    held = tensor;
    changed = true;
  }
  return changed;
}

}  // namespace sdx::session
