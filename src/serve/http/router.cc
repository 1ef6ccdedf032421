#include "serve/http/router.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::serve {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> out;
  out.reserve(8);
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_open(std::string_view segment) { return segment.size() > 2 && segment.front() == '{' && segment.back() == '}'; }
bool takes_rest(std::string_view segment) { return is_open(segment) && segment.ends_with("...}"); }

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string_view>& path) {
  const bool rest = takes_rest(pattern.back());
  if (rest ? path.size() < pattern.size() : path.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (is_open(pattern[i]) ? path[i].empty() : pattern[i] != path[i]) return false;
  }
  return true;
}

// Less is tried first.
int openness(std::string_view segment) { return takes_rest(segment) ? 2 : is_open(segment) ? 1 : 0; }

bool goes_before(const Router::Entry& a, const Router::Entry& b) {
  return std::lexicographical_compare(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                                      [](const auto& x, const auto& y) { return openness(x) < openness(y); });
}

bool answers(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

void add_method(std::string& all, std::string_view method) {
  if (!all.empty()) all += ", ";
  all += method;
  if (method == "GET") all += ", HEAD";
}

}  // namespace

Router::Router() = default;
Router::~Router() = default;

void Router::add(Route route, Handler handler) { insert(std::move(route), std::move(handler), {}); }
void Router::add(Route route, AsyncHandler handler) { insert(std::move(route), {}, std::move(handler)); }

void Router::insert(Route route, Handler handler, AsyncHandler async) {
  if (!route.pattern.starts_with('/')) fail(ErrorCode::invalid_argument, "the route '{}' must begin with '/'", route.pattern);
  auto entry = std::make_unique<Entry>();
  for (const std::string_view segment : split(route.pattern)) entry->segments.emplace_back(segment);
  for (const auto& other : entries_) {
    if (other->route.method == route.method && other->route.pattern == route.pattern) {
      fail(ErrorCode::invalid_argument, "the route '{} {}' is defined twice", route.method, route.pattern);
    }
  }
  entry->route = std::move(route);
  entry->handler = std::move(handler);
  entry->async = std::move(async);
  const auto at =
      std::upper_bound(entries_.begin(), entries_.end(), entry, [](const auto& a, const auto& b) { return goes_before(*a, *b); });
  entries_.insert(at, std::move(entry));
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  if (!path.starts_with('/')) return match;
  const auto segments = split(path);
  for (const auto& entry : entries_) {
    if (!matches(entry->segments, segments)) continue;
    if (!answers(entry->route, method)) {
      add_method(match.allowed, entry->route.method);
      continue;
    }
    match.entry = entry.get();
    for (std::size_t i = 0; i < entry->segments.size(); ++i) {
      const std::string_view segment = entry->segments[i];
      if (!is_open(segment)) continue;
      const bool rest = takes_rest(segment);
      const std::string_view name = segment.substr(1, segment.size() - (rest ? 5 : 2));
      const std::size_t from = static_cast<std::size_t>(segments[i].data() - path.data());
      match.parts.emplace_back(name, rest ? path.substr(from) : segments[i]);
    }
    match.allowed.clear();
    return match;
  }
  return match;
}

void Router::run(const Entry& entry, const RequestPtr& request, const ResponderPtr& responder) {
  if (entry.handler) return answer_with(entry.handler, *request, *responder, entry.route.shape);
  const Handler as_answer = [&](const Request&) -> Response { throw; };
  try {
    entry.async(request, responder);
  } catch (...) {
    answer_with(as_answer, *request, *responder, entry.route.shape);
  }
}

}  // namespace sdx::serve
