#include <sdx/session.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "session/impl/impl.h"
#include "session/observe/trace.h"
#include "session/pipeline.h"

namespace sdx {

using namespace session;

const Value* NamedValues::find(std::string_view name) const noexcept {
  for (const NamedValue& item : items_) {
    if (item.name == name) return &item.value;
  }
  return nullptr;
}

const Value& NamedValues::at(std::string_view name) const {
  if (const Value* v = find(name)) return *v;
  std::vector<std::string> names;
  for (const NamedValue& item : items_) names.push_back(item.name);
  fail(ErrorCode::invalid_argument, "no value named '{}'; there are: {}", name, join(names));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace session {

Session open(Source source, const SessionOptions& options, const InternalOptions& internal) {
  auto impl = std::make_unique<SessionAccess::Impl>();
  impl->load(source, options, internal);
  return SessionAccess::session(std::move(impl));
}

NamedValues run(const Session& session, const NamedValues& inputs, const RunOptions& options,
                const InternalRunOptions& internal) {
  return SessionAccess::impl(session).run(inputs, options, internal);
}

}  // namespace session

Session Session::open(const std::filesystem::path& path, const SessionOptions& options) { return session::open(path, options); }

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  return session::open(ModelBytes{bytes, folder}, options);
}

const std::vector<ValueSpec>& Session::inputs() const { return impl_->context->inputs; }
const std::vector<ValueSpec>& Session::outputs() const { return impl_->context->outputs; }
const std::vector<std::pair<std::string, std::string>>& Session::metadata() const { return impl_->metadata; }
const std::vector<std::pair<std::string, std::string>>& Session::custom_metadata() const { return impl_->custom_metadata; }

NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const { return impl_->run(inputs, options, {}); }

Report Session::Impl::report() const {
  Report r;
  r.model = context->model.path;
  {
    const std::lock_guard lock(mutex);
    r.warnings = warnings;
    r.why = why;
    r.measured = measurement.candidates;
  }
  r.fallbacks = selection.fallbacks;
  r.load_ms = load_ms;
  r.init_ms = init_ms;
  r.peak_bytes = context->budget->peak();
  const std::shared_ptr<Failover> in_use = current_failover();
  const std::shared_ptr<const CompiledChain> chain = in_use->current();
  append_steps(chain->program(), "", r);
  if (chain->from_compiled()) r.compiled = context->compiled->path().string();
  r.runtime = chain->runtime();
  in_use->describe(r);
  return r;
}

Report Session::report() const { return impl_->report(); }

std::vector<ProfileEvent> Session::profile() const {
  const plan::Profiler* profiler = impl_->context->profiler.get();
  return profiler != nullptr ? profiler->events() : std::vector<ProfileEvent>{};
}

void Session::write_trace(const std::filesystem::path& path) const { write_chrome_trace(path, profile()); }

std::string Session::dump(std::string_view stage) const {
  if (stage == "loaded") return impl_->context->full_model().graph.dump();
  const std::shared_ptr<const CompiledChain> chain = impl_->current_failover()->current();
  if (stage == "simplified") return chain->program().graph().dump();
  if (stage == "claimed") return dump_claims(chain->program().graph(), chain->selection());
  if (stage == "planned") return chain->program().dump();
  fail(ErrorCode::invalid_argument, "unknown stage '{}'; stages: loaded, simplified, claimed, planned", stage);
}

}  // namespace sdx
