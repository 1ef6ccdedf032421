#include "cache/compiled_model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/build_id.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system/cpu_bf16.h"
#include "cache/compiled_format.h"
#include "cache/folder.h"
#include "graph/serial.h"

namespace sdx::cache {

namespace fs = std::filesystem;
using namespace compiled;  // NOLINT: this file is its other half

namespace {

std::string options_text(const SessionOptions& o) {
  std::string text = fmt::format("optimize {}, tune {}, quantize {}\n", o.optimize, o.tune, static_cast<int>(o.quantize));
  std::vector<std::string> passes = o.disabled_passes;
  std::sort(passes.begin(), passes.end());
  for (const std::string& p : passes) text += fmt::format("without {}\n", p);
  auto dimensions = o.dimensions;
  std::sort(dimensions.begin(), dimensions.end());
  for (const auto& [symbol, extent] : dimensions) text += fmt::format("{} = {}\n", symbol, extent);
  return text;
}

std::string machine_text() {
  const char* only = std::getenv("SDX_CPU_KERNEL");
  const Isa isa = cpu_isa();
  return fmt::format("{}{}{}{}\n{}\n", name(isa), use_vnni(isa) ? " vnni" : "", use_i8mm() ? " i8mm" : "",
                     use_bf16(isa) ? " bf16" : "", only != nullptr ? only : "");
}

// Marks the folder as in use (for `sdx cache`) and as used at this time. A folder that cannot be written has no lock, and needs
// none: files are only ever renamed into place, and removing a file does not affect those who have it mapped.
File mark_in_use(const fs::path& folder) {
  File file = File::open(folder / kLock, File::For::changing);
  if (!file) file = File::open(folder / kLock, File::For::reading);
  if (file && file.lock(File::Lock::shared, false)) file.touch();
  return file;
}

std::string read_small(const fs::path& path) {
  constexpr std::size_t kMost = 1 << 20;
  try {
    return read_file(path, kMost);
  } catch (const Error&) {
    return {};
  }
}

// Replaces .sealed. Whoever cannot (a read-only folder, another process at it) verifies again the next time.
void seal(const fs::path& folder, const std::string& text) {
  const File lock = open_folder_lock(folder);
  if (!lock || !lock.lock(File::Lock::exclusive, false)) return;
  remove_leftovers(folder);
  try {
    write_file_atomically(folder / kSealed, text, kCacheFileMode);
  } catch (const Error& e) {
    log::debug("{}", e.message());
  }
}

bool settled(const FileStamp& stamp) { return stamp.changed_ns + kTick < clock_ns(); }

}  // namespace

std::optional<CompiledPlace> compiled_place(const fs::path& model, const SessionOptions& options) {
  if (!options.cache || !options.custom_ops.empty() || options.select != Select::order || model.empty()) return std::nullopt;
  try {
    CompiledPlace place;
    place.model = fs::absolute(model).lexically_normal();
    const std::string machine = machine_text(), own = options_text(options);
    place.conditions = fmt::format("{}\n{}{}", build_id(), machine, own);
    ContentHash key;
    key.add(place.model.string());
    key.add(machine);
    key.add(own);
    key.add(SDX_VERSION);
    place.root = cache_folder(options.cache_folder);
    place.folder = place.root / "cpu" / key.text();
    return place;
  } catch (const std::exception& e) {  // an instruction set that does not exist: choosing kernels reports it
    log::debug("no compiled model: {}", e.what());
    return std::nullopt;
  }
}

bool has_compiled(const CompiledPlace& place) { return !place.root.empty() && file_stamp(place.folder / kFile).has_value(); }

std::string compiled_problem(const CompiledPlace& place) {
  if (!place.root.empty()) return cache_problem(place.root, place.folder / kFile);
  static const std::string none = [] {
    std::string why = "neither SDX_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder";
    log::warning("the cache is not used: {}", why);
    return why;
  }();
  return none;
}

std::shared_ptr<const CompiledModel> CompiledModel::open(const CompiledPlace& place, bool mmap) {
  if (!has_compiled(place)) return nullptr;  // the usual case, and a cheap one
  try {
    const std::shared_ptr<CompiledModel> made(new CompiledModel);
    made->read(place, mmap);
    if (!made->trusted(place)) return nullptr;
    made->lock_ = mark_in_use(place.folder);
    return made;
  } catch (const Error& e) {
    log::info("'{}' is not used: {}", (place.folder / kFile).string(), e.message());
  } catch (const std::exception& e) {
    log::info("'{}' is not used: {}", (place.folder / kFile).string(), e.what());
  }
  return nullptr;
}

CompiledModel::~CompiledModel() = default;

void CompiledModel::read(const CompiledPlace& place, bool mmap) {
  // Small files are mapped, too: only this program writes there, and it renames files into place.
  file_ = MappedFile::open(place.folder / kFile, mmap ? 0 : MappedFile::kAll);
  const std::span<const std::byte> bytes = file_->bytes();
  Head head{};
  if (bytes.size() < sizeof(head)) ByteReader::damaged();
  std::memcpy(&head, bytes.data(), sizeof(head));
  const bool ours = std::memcmp(head.magic, kMagic, sizeof(kMagic)) == 0 && head.format == kFormat && head.order == kOrder;
  if (!ours || head.file_bytes != bytes.size() || head.checked_bytes > bytes.size() || head.checked_bytes < sizeof(head) ||
      head.meta_bytes > head.checked_bytes - sizeof(head)) {
    ByteReader::damaged();
  }
  checked_ = head.checked_bytes;
  const Hash128 expected{head.hash_low, head.hash_high};
  head.hash_low = head.hash_high = 0;
  if (hash_head(&head, bytes.data() + sizeof(head), checked_ - sizeof(head)) != expected) ByteReader::damaged();
  read_tables({reinterpret_cast<const char*>(bytes.data()) + sizeof(head), head.meta_bytes}, place, MappedFile::copied(mmap));
}

const std::byte* CompiledModel::block(const Block& b) const {
  if (b.bytes > file_->bytes().size() || b.offset > file_->bytes().size() - b.bytes || b.offset % kAlign != 0) {
    ByteReader::damaged();
  }
  return file_->bytes().data() + b.offset;
}

static void read_pairs(ByteReader& in, std::vector<std::pair<std::string, std::string>>& pairs) {
  pairs.resize(in.count());
  for (auto& [key, value] : pairs) {
    key = in.text();
    value = in.text();
  }
}

void CompiledModel::read_tables(std::string_view meta, const CompiledPlace& place, std::size_t copied) {
  ByteReader in(meta);
  if (in.view() != place.conditions) fail(ErrorCode::invalid_model, "it was written by another build, or for other options");
  if (in.view() != place.model.string()) fail(ErrorCode::invalid_model, "it was written for another model");
  sources_.resize(in.count());
  for (Source& s : sources_) {
    s.path = in.text();
    s.bytes = in.number<std::uint64_t>();
    s.hash = in.text();
  }
  if (sources_.empty()) ByteReader::damaged();
  interface_.inputs.resize(in.count());
  for (ValueSpec& s : interface_.inputs) {
    s = read_spec(in);
    interface_.may_be_absent.push_back(in.number<std::uint8_t>() != 0);
  }
  interface_.outputs.resize(in.count());
  for (ValueSpec& s : interface_.outputs) s = read_spec(in);
  read_pairs(in, interface_.metadata);
  read_pairs(in, interface_.custom_metadata);
  interface_.warnings.resize(in.count());
  for (std::string& w : interface_.warnings) w = in.text();

  const auto read_block = [&] {
    Block b{in.number<std::uint64_t>(), in.number<std::uint64_t>(), in.raw<std::uint64_t>()};
    block(b);
    blocks_.push_back(b);
    return b;
  };
  storages_.resize(in.count());
  for (Storage& s : storages_) {
    const auto kind = in.number<Kind>();
    if (kind == Kind::block) {
      const Block b = read_block();
      s = {block(b), b.bytes, file_};
    } else if (kind == Kind::source) {
      Source& from = sources_.at(in.number<std::size_t>());
      const auto offset = in.number<std::uint64_t>();
      s.bytes = in.number<std::uint64_t>();
      if (from.map == nullptr) from.map = MappedFile::open(from.path, copied);
      const std::span<const std::byte> all = from.map->bytes();
      if (s.bytes > all.size() || offset > all.size() - s.bytes) ByteReader::damaged();
      s.data = all.data() + offset;
      s.owner = from.map;
    } else {
      ByteReader::damaged();
    }
  }
  for (std::uint64_t i = 0; i < storages_.size(); ++i) storage_at_[storages_[i].data].push_back(i);
  constants_.resize(in.count());
  for (Constant& c : constants_) {
    const auto kind = in.number<Kind>();
    const auto dtype = in.number<std::uint32_t>();
    if (dtype == 0 || dtype >= static_cast<std::uint32_t>(kDataTypeCount)) ByteReader::damaged();
    c.dtype = static_cast<DataType>(dtype);
    c.shape.resize(in.count());
    for (std::int64_t& d : c.shape) d = in.number<std::int64_t>();
    const std::int64_t elements = element_count(c.shape);
    if ((kind == Kind::text) != (c.dtype == DataType::string)) ByteReader::damaged();
    if (kind == Kind::text) {
      c.texts.resize(in.count());
      for (std::string& t : c.texts) t = in.text();
      if (static_cast<std::int64_t>(c.texts.size()) != elements) ByteReader::damaged();
    } else {
      c.storage = in.number<std::uint64_t>();
      if (storages_.at(c.storage).bytes != byte_size(c.dtype, elements)) ByteReader::damaged();
    }
  }
  const std::size_t packs = in.count();
  for (std::size_t i = 0; i < packs; ++i) {
    std::string key = in.text();
    packs_.emplace(std::move(key), read_block());
  }
  graph_ = in.view();
  if (!in.at_end()) ByteReader::damaged();
}

// Whether the contents, and those of the model, are the same as when they were written: see the top of compiled_model.h.
bool CompiledModel::trusted(const CompiledPlace& place) {
  const bool may_read = cache_problem(place.root, place.folder / kSealed).empty();
  const std::string sealed = may_read ? read_small(place.folder / kSealed) : "";
  const auto known = [&](const fs::path& path, const FileStamp& stamp) {
    return sealed.find("\n" + stamp_line(path, stamp)) != std::string::npos;
  };
  bool all_known = known(kFile, file_->stamp());
  for (Source& s : sources_) {
    const std::optional<FileStamp> stamp = file_stamp(s.path);
    const bool same_size = stamp && stamp->bytes == s.bytes;
    if (!same_size || (s.map && s.map->stamp() != *stamp)) {
      fail(ErrorCode::invalid_model, "'{}' has changed since", s.path.string());
    }
    s.stamp = *stamp;
    all_known = all_known && known(s.path, *stamp);
  }
  if (all_known) return true;
  if (!known(kFile, file_->stamp()) && !blocks_whole()) ByteReader::damaged();
  bool may_seal = settled(file_->stamp());
  std::string text =
      fmt::format("sdx cache entry 1\nlabel {}\nfile {} - {}\n", place.model.filename().string(), file_->bytes().size(), kFile);
  text += stamp_line(kFile, file_->stamp());
  for (const Source& s : sources_) {
    if (hash_file(s.path) != s.hash) fail(ErrorCode::invalid_model, "'{}' has changed since", s.path.string());
    may_seal = may_seal && settled(s.stamp) && file_stamp(s.path) == s.stamp;
    text += stamp_line(s.path, s.stamp);
  }
  if (may_seal && file_stamp(file_->path()) == file_->stamp()) seal(place.folder, text);
  return true;
}

bool CompiledModel::blocks_whole() const {
  return std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& b) {
    const std::byte* data = block(b);
    if (b.offset + b.bytes <= checked_) return true;
    const bool whole = hash_block(data, b.bytes) == b.hash;
    release_mapped_pages(data, b.bytes);
    return whole;
  });
}

bool CompiledModel::sources_unchanged() const {
  return std::all_of(sources_.begin(), sources_.end(), [](const Source& s) { return file_stamp(s.path) == s.stamp; });
}

Graph CompiledModel::graph() const {
  return decode_graph(graph_, [this](std::uint64_t number) {
    if (number >= constants_.size()) ByteReader::damaged();
    const Constant& c = constants_[number];
    if (c.dtype == DataType::string) return Tensor::of<std::string>(c.shape, c.texts);
    const Storage& s = storages_[c.storage];
    return Tensor::view(s.data, c.dtype, c.shape, s.owner);
  });
}

std::uint64_t CompiledModel::storage_of(const Tensor& t) const {
  const auto it = storage_at_.find(t.data());
  if (it == storage_at_.end()) return kUnknown;
  for (const std::uint64_t i : it->second) {
    if (storages_[i].bytes == t.bytes()) return i;
  }
  return kUnknown;
}

std::shared_ptr<const void> CompiledModel::find(const PackKey& key, PackSources sources, std::size_t bytes) const {
  std::vector<std::uint64_t> storages;
  for (const Tensor* t : sources) {
    storages.push_back(t != nullptr ? storage_of(*t) : kLeftOut);
    if (storages.back() == kUnknown) return nullptr;
  }
  const auto it = packs_.find(pack_name(key.text(), storages));
  if (it == packs_.end() || it->second.bytes != bytes) return nullptr;
  return {shared_from_this(), block(it->second)};
}

}  // namespace sdx::cache
