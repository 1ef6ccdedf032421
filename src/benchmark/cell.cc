#include "benchmark/cell.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/processes/usage.h"
#include "benchmark/calibrate.h"
#include "benchmark/machine.h"
#include "benchmark/profile.h"
#include "inputs/input_plan.h"
#include "providers/interface/provider.h"
#include "session/open.h"
#include "session/selection.h"

namespace sdx::benchmark {
namespace {

// The advice for callers that can use --fallback warn (allow_fallback), in place of advice about `strict`.
constexpr std::string_view kInstead = ". --fallback warn measures the next provider";

CellError as_cell_error(const std::exception& e) {
  if (const auto* error = dynamic_cast<const Error*>(&e))
    return {std::string(name(error->code())), session::without_strict(error->what(), kInstead)};
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    return {std::string(name(ErrorCode::out_of_memory)), "the machine ran out of memory"};
  }
  return {std::string(name(ErrorCode::internal)), e.what()};
}

template <class F>
auto guarded(const F& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    throw as_cell_error(e);
  }
}

std::string canonical_or_same(const std::string& provider) {
  try {
    return canonical_provider(provider);
  } catch (const Error&) {
    return provider;
  }
}

// Counts the nodes that each provider runs; the requested providers come first.
std::vector<ProviderNodes> places_of(const Report& report, const std::vector<std::string>& asked) {
  std::vector<ProviderNodes> places;
  for (const NodeReport& n : report.nodes) {
    const auto same = [&](const ProviderNodes& p) { return p.provider == n.provider; };
    const auto at = std::find_if(places.begin(), places.end(), same);
    if (at == places.end()) {
      places.push_back({n.provider, 1});
    } else {
      ++at->nodes;
    }
  }
  const auto is_asked = [&](const ProviderNodes& p) {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const std::string& a) { return canonical_or_same(a) == canonical_or_same(p.provider); });
  };
  std::stable_partition(places.begin(), places.end(), is_asked);
  return places;
}

// A backend's figures must be its own: nothing may have run on a provider that was not asked for without saying so.
void check_providers(const Report& report, const CellOptions& options, Opened& opened) {
  const std::vector<std::string>& asked = options.session.providers;
  if (!report.fallbacks.empty() && !options.allow_fallback) {
    fail(ErrorCode::provider_unavailable, "{}", join(report.fallbacks, "; "));
  }
  if (asked.empty()) return;
  const std::vector<std::string> chain = provider_chain(asked, true);
  const auto foreign = [&](const std::string& p) {
    return std::find(chain.begin(), chain.end(), canonical_or_same(p)) == chain.end();
  };
  if (report.providers.empty() || std::find(chain.begin(), chain.end(), "auto") != chain.end()) return;
  if (std::none_of(report.providers.begin(), report.providers.end(), foreign)) return;
  const bool all = std::all_of(report.providers.begin(), report.providers.end(), foreign);
  if (all && !options.allow_fallback) {
    fail(ErrorCode::provider_unavailable, "asked for {}, but every node ran on {}", join(asked), join(report.providers));
  }
  std::string counts;
  for (const ProviderNodes& p : opened.places) {
    counts += fmt::format("{}{} {}{}", counts.empty() ? "" : ", ", p.provider, counts.empty() ? "ran " : "", p.nodes);
    if (&p == opened.places.data()) counts += fmt::format(" of {} nodes", report.nodes.size());
  }
  opened.notes.push_back(counts);
}

class LocalCell : public Cell {
 public:
  explicit LocalCell(CellOptions options) : options_(std::move(options)) {}

  Opened open() override {
    return guarded([&] {
      session::InternalOptions internal;
      internal.fallbacks_told_elsewhere = true;  // in the results
      session_.emplace(session::open(options_.model, options_.session, internal));
      const Report report = session_->report();
      Opened opened;
      opened.provider = join(report.providers, ",");
      opened.runtime = report.runtime;
      opened.fallbacks = report.fallbacks;
      opened.load_ms = report.load_ms;
      opened.init_ms = report.init_ms;
      opened.places = places_of(report, options_.session.providers);
      check_providers(report, options_, opened);
      inputs_ = inputs::with_made_up(session_->inputs(), options_.inputs, options_.shapes, options_.seed, options_.bounds);
      return opened;
    });
  }

  Load run(const Order& order, const std::function<void(std::int64_t)>& done) override {
    return guarded([&] {
      const RunOptions run_options;
      const LoadOptions load = order.sequential ? LoadOptions{} : options_.load;
      const Calibration before = order.sequential ? Calibration{} : calibrate(threads());
      Load out = generate_load(
          load, order.count, order.duration_ns, order.seed, [&] { run_once(run_options); }, done);
      if (!order.sequential) {
        const Calibration after = calibrate(threads());
        out.compute_ns = std::max(before.compute_ns, after.compute_ns);
        out.memory_ns = std::max(before.memory_ns, after.memory_ns);
      }
      return out;
    });
  }

  Closed close() override {
    return guarded([&] {
      Closed closed;
      closed.peak_rss_mb = peak_rss_mb();  // before the profiler takes its share
      session_.reset();
      if (options_.profile) {
        Profile profile = profile_model(options_.model, options_.session, inputs_, options_.trace);
        closed.operators = std::move(profile.operators);
        closed.nodes = std::move(profile.nodes);
      }
      return closed;
    });
  }

 private:
  void run_once(const RunOptions& run_options) const {
    try {
      session_->run(inputs_, run_options);
    } catch (Error& e) {
      const std::string made_up = inputs::made_up_note(session_->inputs(), options_.shapes, options_.bounds);
      if (!made_up.empty() && e.code() == ErrorCode::runtime_failure) e.add_context(made_up);
      throw;
    }
  }
  // The number of threads of a run.
  int threads() const { return options_.session.threads > 0 ? options_.session.threads : usable_cores(); }

  CellOptions options_;
  std::optional<Session> session_;
  NamedValues inputs_;
};

}  // namespace

std::unique_ptr<Cell> make_local_cell(CellOptions options) { return std::make_unique<LocalCell>(std::move(options)); }

double peak_rss_mb() { return static_cast<double>(process_use().peak_bytes) / (1 << 20); }

}  // namespace sdx::benchmark
