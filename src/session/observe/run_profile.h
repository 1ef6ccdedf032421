#pragma once
// A profile of one run, beside the one of the whole session.

#include <memory>

#include "base/tools_api.h"
#include "plan/profiler.h"

namespace sdx::session {

// For the runs that this thread starts while the object lives; the innermost counts. Their steps are recorded there alone.
class SDX_TOOLS_API RunProfileScope {
 public:
  explicit RunProfileScope(std::shared_ptr<plan::Profiler> profiler) noexcept;
  ~RunProfileScope();
  RunProfileScope(const RunProfileScope&) = delete;
  RunProfileScope& operator=(const RunProfileScope&) = delete;

 private:
  std::shared_ptr<plan::Profiler> outer_;
};

// Of this thread; null: none.
std::shared_ptr<plan::Profiler> run_profiler() noexcept;

}  // namespace sdx::session
