#include "serve/monitor/metrics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace sdx::serve {
namespace {

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

bool is_name(std::string_view name, std::string_view marks) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || marks.find(c) != marks.npos;
  });
}

// `model="a",version="1"`
std::string label_text(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!is_name(name, "_")) fail(ErrorCode::invalid_argument, "'{}' cannot be the name of a metric's label", name);
    fmt::format_to(std::back_inserter(out), "{}{}=\"{}\"", out.empty() ? "" : ",", name, escaped(value, true));
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  const bool whole = std::abs(value) < 9.0e15 && value == std::floor(value);
  return whole ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

void line(std::string& out, std::string_view name, std::string_view labels, std::string_view value) {
  out += name;
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  out += ' ';
  out += value;
  out += '\n';
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) noexcept {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

struct Metrics::Impl {
  struct Family {
    std::string kind, help;
    std::map<std::string, std::unique_ptr<Counter>> counters;  // by labels
    std::map<std::string, std::unique_ptr<Histogram>> histograms;
    std::vector<std::function<std::vector<Sample>()>> collected;
  };
  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;
  std::multimap<std::string, std::string> other_names;

  Family& family(std::string_view name, std::string_view help, std::string_view kind) {
    const auto found = families.find(name);
    if (found != families.end()) {
      if (found->second.kind != kind) fail(ErrorCode::invalid_argument, "the metric {} is a {}", name, found->second.kind);
      return found->second;
    }
    if (!is_name(name, "_:")) fail(ErrorCode::invalid_argument, "'{}' cannot be the name of a metric", name);
    Family& made = families[std::string(name)];
    made.kind = kind;
    made.help = help;
    return made;
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
  const std::string text = label_text(labels);
  const std::lock_guard lock(impl_->mutex);
  auto& slot = impl_->family(name, help, "counter").counters[text];
  if (!slot) slot = std::make_unique<Counter>();
  return *slot;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                              const Labels& labels) {
  const std::string text = label_text(labels);
  const std::lock_guard lock(impl_->mutex);
  auto& slot = impl_->family(name, help, "histogram").histograms[text];
  if (!slot) slot = std::make_unique<Histogram>(bounds);
  return *slot;
}

void Metrics::collect(const std::string& name, const std::string& help, const std::string& kind,
                      std::function<std::vector<Sample>()> samples) {
  const std::lock_guard lock(impl_->mutex);
  impl_->family(name, help, kind).collected.push_back(std::move(samples));
}

void Metrics::also_called(std::string name, std::string other) {
  if (!is_name(other, "_:")) fail(ErrorCode::invalid_argument, "'{}' cannot be the name of a metric", other);
  const std::lock_guard lock(impl_->mutex);
  impl_->other_names.emplace(std::move(name), std::move(other));
}

void Metrics::write(std::string& out, const std::string& name, const void* which) const {
  const auto& family = *static_cast<const Impl::Family*>(which);
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name, family.kind);
  for (const auto& [labels, counter] : family.counters) line(out, name, labels, number(counter->value()));
  for (const auto& [labels, histogram] : family.histograms) {
    std::uint64_t below = 0;
    const std::string comma = labels.empty() ? "" : ",";
    for (std::size_t i = 0; i <= histogram->bounds_.size(); ++i) {
      below += histogram->counts_[i].load(std::memory_order_relaxed);
      const std::string bound = i < histogram->bounds_.size() ? number(histogram->bounds_[i]) : "+Inf";
      line(out, name + "_bucket", fmt::format("{}{}le=\"{}\"", labels, comma, bound), fmt::format("{}", below));
    }
    line(out, name + "_sum", labels, number(histogram->sum_.load(std::memory_order_relaxed)));
    line(out, name + "_count", labels, fmt::format("{}", below));
  }
  for (const auto& collected : family.collected) {
    for (const Sample& sample : collected()) {
      line(out, sample.name.empty() ? name : sample.name, label_text(sample.labels), number(sample.value));
    }
  }
}

std::string Metrics::text() const {
  std::string out;
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [name, family] : impl_->families) {
    write(out, name, &family);
    const auto [first, last] = impl_->other_names.equal_range(name);
    for (auto other = first; other != last; ++other) write(out, other->second, &family);
  }
  return out;
}

}  // namespace sdx::serve
