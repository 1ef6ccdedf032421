#include "session/observe/run_profile.h"

#include <utility>

namespace sdx::session {
namespace {

thread_local std::shared_ptr<plan::Profiler> t_profiler;

}  // namespace

RunProfileScope::RunProfileScope(std::shared_ptr<plan::Profiler> profiler) noexcept
    : outer_(std::exchange(t_profiler, std::move(profiler))) {}
RunProfileScope::~RunProfileScope() { t_profiler = std::move(outer_); }

std::shared_ptr<plan::Profiler> run_profiler() noexcept { return t_profiler; }

}  // namespace sdx::session
