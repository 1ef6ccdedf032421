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

Session open(Source source, const SessionOptions& options, const Extras& extras) {
  auto impl = std::make_unique<SessionAccess::Impl>();
  impl->load(source, options, extras);
  return SessionAccess::session(std::move(impl));
}

NamedValues run(const Session& session, const NamedValues& inputs, const RunOptions& options, const RunExtras& extras) {
  return SessionAccess::impl(session).run(inputs, options, extras);
}

}  // namespace session

Session Session::open(const std::filesystem::path& path, const SessionOptions& options) { return session::open(path, options); }

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  return session::open(ModelBytes{bytes, folder}, options);
}

const std::vector<ValueSpec>& Session::inputs() const { return impl_->core->inputs; }
const std::vector<ValueSpec>& Session::outputs() const { return impl_->core->outputs; }
const std::vector<std::pair<std::string, std::string>>& Session::metadata() const { return impl_->metadata; }
const std::vector<std::pair<std::string, std::string>>& Session::custom_metadata() const { return impl_->custom_metadata; }

NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const { return impl_->run(inputs, options, {}); }

Report Session::Impl::report() const {
  Report r;
  r.model = core->model.path;
  {
    const std::lock_guard lock(mutex);
    r.warnings = warnings;
    r.why = why;
    r.measured = measurement.candidates;
  }
  r.fallbacks = selection.fallbacks;
  r.load_ms = load_ms;
  r.init_ms = init_ms;
  r.peak_bytes = core->budget->peak();
  const std::shared_ptr<Service> now = serving();
  const std::shared_ptr<const Engine> engine = now->current();
  append_steps(engine->program(), "", r);
  if (engine->from_compiled()) r.compiled = core->compiled->path().string();
  r.runtime = engine->runtime();
  now->describe(r);
  return r;
}

Report Session::report() const { return impl_->report(); }

std::vector<ProfileEvent> Session::profile() const {
  const plan::Profiler* profiler = impl_->core->profiler.get();
  return profiler != nullptr ? profiler->events() : std::vector<ProfileEvent>{};
}

void Session::write_trace(const std::filesystem::path& path) const { write_chrome_trace(path, profile()); }

std::string Session::dump(std::string_view stage) const {
  if (stage == "loaded") return impl_->core->full_model().graph.dump();
  const std::shared_ptr<const Engine> engine = impl_->serving()->current();
  if (stage == "simplified") return engine->program().graph().dump();
  if (stage == "claimed") return dump_claims(engine->program().graph(), engine->selection());
  if (stage == "planned") return engine->program().dump();
  fail(ErrorCode::invalid_argument, "unknown stage '{}'; stages: loaded, simplified, claimed, planned", stage);
}

}  // namespace sdx
