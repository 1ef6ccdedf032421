// `sdx doctor --json`

#include <fmt/format.h>

#include <string>

#include "base/text/json_text.h"
#include "cli/doctor/facts.h"
#include "cli/providers.h"

namespace sdx::cli::doctor {
namespace {

const char* word_of(LibraryLook::State state) {
  switch (state) {
    case LibraryLook::State::works: return "works";
    case LibraryLook::State::absent: return "absent";
    case LibraryLook::State::fails: return "fails";
  }
  return "";
}

template <class T, class F>
std::string list_of(const std::vector<T>& items, const F& text) {
  std::string out;
  for (const T& item : items) out += (out.empty() ? "" : ",") + text(item);
  return "[" + out + "]";
}

std::string part_json(const Part& p) {
  return fmt::format("{{\"name\":{},\"purpose\":{},\"state\":\"{}\",\"path\":{},\"reason\":{},\"hint\":{}}}", json_string(p.name),
                     json_string(p.purpose), word_of(p.look.state), json_or_null(p.look.file.string()),
                     json_or_null(p.look.reason), json_or_null(p.look.hint));
}

std::string instructions_json(const CpuInstructions& i) {
  return fmt::format("{{\"name\":{},\"used\":{},\"reason\":{}}}", json_string(i.name), i.used, json_or_null(i.reason));
}

std::string build_json(const Build& b) {
  return fmt::format(
      "\"sdx\":{{\"version\":{},\"build\":{},\"compiler\":{},\"path\":{}}},"
      "\"libsdx\":{{\"version\":{},\"build\":{},\"path\":{},\"same_build\":{}}}",
      json_string(b.version), json_string(b.id), json_string(b.how), json_or_null(b.command.string()),
      json_string(b.engine_version), json_string(b.engine_id), json_or_null(b.engine.string()), b.fits());
}

std::string machine_json(const Facts& f) {
  const CpuShare& share = f.threads.share;
  const auto count = [](int n) { return n > 0 ? std::to_string(n) : std::string("null"); };
  return fmt::format(
      "\"processor\":{{\"name\":{},\"instructions\":{},\"problem\":{}}},"
      "\"threads\":{{\"used\":{},\"cores\":{},\"allowed\":{},\"quota\":{},\"sdx_threads\":{}}}",
      json_or_null(f.processor.name), list_of(f.processor.instructions, instructions_json), json_or_null(f.processor.problem),
      f.threads.used, count(share.cores), count(share.allowed), share.quota ? json_number(*share.quota) : "null",
      json_or_null(f.threads.variable));
}

std::string folders_json(const Facts& f) {
  const CacheFacts& c = f.cache;
  const ModelFacts& m = f.models;
  return fmt::format(
      "\"cache\":{{\"folder\":{},\"exists\":{},\"bytes\":{},\"entries\":{},\"problem\":{},\"hint\":{}}},"
      "\"models\":{{\"folder\":{},\"count\":{}}},"
      "\"registry\":{{\"file\":{},\"count\":{},\"missing\":{},\"problem\":{}}},"
      "\"project\":{{\"file\":{},\"name\":{},\"problem\":{}}},"
      "\"hub\":{{\"endpoint\":{},\"token\":{},\"proxies\":{},\"problem\":{}}}",
      json_or_null(c.folder.string()), c.exists, c.bytes, c.entries, json_or_null(c.problem), json_or_null(c.hint),
      json_or_null(m.folder.string()), m.models, json_or_null(m.registry.string()), m.listed, m.gone, json_or_null(m.problem),
      json_or_null(f.project.file.string()), json_or_null(f.project.name), json_or_null(f.project.problem),
      json_or_null(f.hub.endpoint), f.hub.token, json_list(f.hub.proxies), json_or_null(f.hub.problem));
}

}  // namespace

std::string json_of(const Facts& facts) {
  const std::vector<std::string> wrong = problems(facts);
  return fmt::format("{{\"ok\":{},\"problems\":{},{},\"libraries\":{},{},\"providers\":{},{},\"variables\":{}}}\n", wrong.empty(),
                     json_list(wrong), build_json(facts.build), list_of(facts.parts, part_json), machine_json(facts),
                     list_of(facts.providers, provider_json), folders_json(facts), json_list(facts.variables));
}

}  // namespace sdx::cli::doctor
