// sdx cache

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "cache/entry.h"
#include "cache/folder.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "providers/interface/provider.h"

namespace sdx::cli {
namespace {

constexpr const char* kListExamples =
    "Examples:\n"
    "  sdx cache ls\n"
    "  sdx cache ls --json\n";

constexpr const char* kClearExamples =
    "Examples:\n"
    "  sdx cache clear\n"
    "  sdx cache clear openvino tensorrt\n"
    "  sdx cache clear 4f1d0a                 (an entry, by the beginning of its key)\n"
    "  sdx cache clear --older-than 30\n"
    "Entries in use by a running session are kept.\n";

struct CacheCommand {
  std::string folder;
  std::vector<std::string> which;
  int older_than = -1;
  bool json = false, dry_run = false;

  int list() const;
  int clear() const;
  bool wanted(const cache::CacheItem& item) const;
};

std::string items_json(const std::vector<cache::CacheItem>& items) {
  std::string out;
  for (const cache::CacheItem& i : items) {
    out += fmt::format(
        "{}{{\"provider\":{},\"key\":{},\"model\":{},\"bytes\":{},\"files\":{},\"last_used\":{},\"in_use\":{},\"folder\":{}}}",
        out.empty() ? "" : ",", json_string(i.provider), json_string(i.key), json_string(i.label), i.bytes, i.files, i.last_used,
        i.in_use, json_string(i.folder.string()));
  }
  return "[" + out + "]";
}

std::uintmax_t total_of(const std::vector<cache::CacheItem>& items) {
  std::uintmax_t total = 0;
  for (const cache::CacheItem& i : items) total += i.bytes;
  return total;
}

std::string count_text(std::size_t n) { return fmt::format("{} {}", n, n == 1 ? "entry" : "entries"); }

int CacheCommand::list() const {
  const std::filesystem::path root = cache::cache_folder(folder);
  const std::vector<cache::CacheItem> items = cache::list_cache(root);
  const std::uintmax_t total = total_of(items);
  if (json) {
    print(fmt::format("{{\"folder\":{},\"bytes\":{},\"entries\":{}}}\n", json_string(root.string()), total, items_json(items)));
    return kOk;
  }
  std::string out;
  std::vector<std::vector<std::string>> rows{{"provider", "size", "last used", "key", "model"}};
  for (const cache::CacheItem& i : items) {
    const std::time_t time = i.last_used;
    rows.push_back({i.provider, size_text(static_cast<double>(i.bytes)), fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(time)),
                    i.key.substr(0, 8), i.label + (i.in_use ? "  (in use)" : "")});
  }
  if (!items.empty()) out += text_table(rows, TableLayout{"", static_cast<std::size_t>(terminal_columns()), 1});
  out += root.empty()
             ? std::string("there is no cache: neither SDX_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder\n")
             : fmt::format("{} in {} below {}\n", size_text(static_cast<double>(total)), count_text(items.size()), root.string());
  print(out);
  return kOk;
}

bool CacheCommand::wanted(const cache::CacheItem& item) const {
  constexpr std::int64_t kDay = 86400;
  if (older_than >= 0 && item.last_used > std::time(nullptr) - older_than * kDay) return false;
  if (which.empty()) return true;
  return std::any_of(which.begin(), which.end(),
                     [&](const std::string& w) { return item.provider == w || item.key.starts_with(w); });
}

int CacheCommand::clear() const {
  const std::filesystem::path root = cache::cache_folder(folder);
  const std::vector<cache::CacheItem> all = cache::list_cache(root);
  for (const std::string& w : which) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const cache::CacheItem& i) { return i.provider == w || i.key.starts_with(w); });
    if (known) continue;
    std::vector<std::string> names{"measured"};
    for (const ProviderName& p : provider_names()) names.push_back(p.name);
    if (std::find(names.begin(), names.end(), w) != names.end()) continue;  // has nothing
    fail(ErrorCode::invalid_argument, "the cache has no entry or provider '{}'; `sdx cache ls` lists its contents", w);
  }
  std::vector<cache::CacheItem> removed, kept;
  for (const cache::CacheItem& i : all) {
    if (wanted(i) && dry_run) removed.push_back(i);
    if (wanted(i) && !dry_run) (cache::remove_cache_item(i) ? removed : kept).push_back(i);
  }
  for (const cache::CacheItem& i : kept)
    note(fmt::format("warning: {} {} stays: it is in use, or cannot be removed", i.provider, i.key));
  if (json) {
    print(fmt::format("{{\"folder\":{},\"bytes\":{},\"removed\":{},\"kept\":{}}}\n", json_string(root.string()),
                      total_of(removed), items_json(removed), items_json(kept)));
  } else {
    print(fmt::format("{} {} in {}\n", dry_run ? "would remove" : "removed", size_text(static_cast<double>(total_of(removed))),
                      count_text(removed.size())));
  }
  return kOk;
}

}  // namespace

void add_cache(const Command& app, Action& action) {
  const Command command = app.add_subcommand("cache", "List or remove compiled models that are kept for later starts");
  command->require_subcommand(1);
  const auto c = std::make_shared<CacheCommand>();
  const auto common = [&](const Command& sub) {
    sub.add_option("--cache-dir", c->folder, "Cache folder, instead of SDX_CACHE_DIR, $XDG_CACHE_HOME/sdx or ~/.cache/sdx")
        ->type_name("DIR");
    sub.add_flag("--json", c->json, "Print JSON");
  };
  const Command list = command->add_subcommand("ls", "List entries with their sizes, most recently used first");
  common(list);
  list->footer(kListExamples);
  list->callback([c, &action] { action = [c] { return c->list(); }; });
  const Command clear = command->add_subcommand("clear", "Remove all entries, the entries of a provider, or single entries");
  common(clear);
  clear->add_option("WHICH", c->which, "Providers, or beginnings of keys");
  clear->add_flag("--dry-run", c->dry_run, "Print what would be removed, and remove nothing");
  clear->add_option("--older-than", c->older_than, "Only entries that have not been used for this many days")
      ->range(0, 100000)
      ->type_name("DAYS");
  clear->footer(kClearExamples);
  clear->callback([c, &action] { action = [c] { return c->clear(); }; });
}

}  // namespace sdx::cli
