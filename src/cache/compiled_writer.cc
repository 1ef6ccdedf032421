#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system/new_file.h"
#include "cache/compiled_format.h"
#include "cache/compiled_model.h"
#include "cache/folder.h"
#include "graph/serial.h"
#include "onnx/external_names.h"

namespace sdx::cache {

namespace fs = std::filesystem;
using namespace compiled;  // NOLINT: this file is its other half

namespace {

constexpr std::uint64_t round_up(std::uint64_t v, std::uint64_t unit) { return (v + unit - 1) / unit * unit; }

[[noreturn]] void fail_io(const char* what, const fs::path& path) {
  fail(ErrorCode::io, "cannot {} '{}': {}", what, path.string(), std::strerror(errno));
}

struct Piece {
  const void* data = nullptr;
  std::uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::uint64_t offset = 0;
};

// A folder in which only one process writes at a time. `mine()` false: another process does.
class Bench {
 public:
  explicit Bench(const fs::path& folder) {
    make_cache_folder(folder);
    lock_ = open_folder_lock(folder);
    if (!lock_) fail_io("open", folder);
    mine_ = lock_.lock(File::Lock::exclusive, false);
    if (mine_) remove_leftovers(folder);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  bool mine() const { return mine_; }

 private:
  File lock_;
  bool mine_ = false;
};

// The model's files, with hashes of their contents.
class Sources {
 public:
  explicit Sources(const Recording& r) {
    add(r.place.model);
    for (const std::string& name : external_names(r.place.model)) add(r.place.model.parent_path() / name);
    if (stamps_[0] != r.model) fail(ErrorCode::io, "'{}' was changed meanwhile", r.place.model.string());
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      // The file was written to after opening began, so it is unknown which state was compiled.
      if (stamps_[i].changed_ns > r.started_ns - kTick) fail(ErrorCode::io, "'{}' was changed just now", paths_[i].string());
    }
    for (const fs::path& p : paths_) hashes_.push_back(hash_file(p));
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (file_stamp(paths_[i]) != stamps_[i]) fail(ErrorCode::io, "'{}' was changed meanwhile", paths_[i].string());
    }
  }
  std::optional<std::size_t> find(const fs::path& path) const {
    const auto it = std::find(paths_.begin(), paths_.end(), fs::absolute(path).lexically_normal());
    return it == paths_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(it - paths_.begin()));
  }
  void write(ByteWriter& out) const {
    out.number(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      out.text(paths_[i].string());
      out.number(stamps_[i].bytes);
      out.text(hashes_[i]);
    }
  }

 private:
  void add(const fs::path& path) {
    const std::optional<FileStamp> stamp = file_stamp(path);
    if (!stamp) fail(ErrorCode::io, "there is no file '{}'", path.string());
    paths_.push_back(path.lexically_normal());
    stamps_.push_back(*stamp);
  }
  std::vector<fs::path> paths_;
  std::vector<FileStamp> stamps_;
  std::vector<std::string> hashes_;
};

class Composer {
 public:
  Composer(const Recording& r, const Sources& sources) : r_(r), sources_(sources) {
    for (const PackStore::Made& m : r.packs) {
      for (const Tensor& t : m.sources) {
        if (t.defined()) packed_.emplace(t.data(), t.bytes());
      }
    }
  }

  void write(const ModelInterface& interface, NewFile& file) {
    const std::string graph = encode_graph(r_.graph, [this](const Tensor& t) { return constant(t); });
    std::vector<std::pair<std::string, std::size_t>> packs;  // name and piece
    for (const PackStore::Made& m : r_.packs) {
      std::vector<std::uint64_t> storages;
      for (const Tensor& t : m.sources) storages.push_back(t.defined() ? storage(t) : kLeftOut);
      packs.emplace_back(pack_name(m.key, storages), piece(m.data.get(), m.bytes, m.data));
    }
    // Offsets take more or fewer bytes in the tables as they are larger: lay out until it comes out even.
    std::uint64_t room = 0;
    std::string meta;
    do {
      room = round_up(meta.size(), kAlign) + (meta.empty() ? 0 : kAlign);
      lay_out(sizeof(Head) + room);
      meta = tables(interface, packs, graph);
    } while (meta.size() > room);
    meta.resize(room, '\0');  // what is behind `meta_bytes` counts as checked, too
    store(meta, file);
  }

 private:
  struct Entry {
    Kind kind = Kind::block;
    std::size_t piece = 0;  // or the source file's number
    std::uint64_t offset = 0, bytes = 0;
  };
  using Span = std::pair<const void*, std::uint64_t>;

  std::size_t piece(const void* data, std::uint64_t bytes, std::shared_ptr<const void> owner) {
    pieces_.push_back({data, bytes, std::move(owner), 0});
    return pieces_.size() - 1;
  }

  // Weights stay in the model's own file where kernels can use them there, or do not need them any more.
  std::uint64_t storage(const Tensor& t) {
    const auto [it, added] = storage_numbers_.try_emplace(Span{t.data(), t.bytes()}, storages_.size());
    if (!added) return it->second;
    Entry e;
    e.bytes = t.bytes();
    const auto place = e.bytes >= kSmall ? MappedFile::place_of(t.data()) : std::nullopt;
    const auto source = place ? sources_.find(place->path) : std::nullopt;
    if (source && (t.is_aligned() || packed_.count(it->first) != 0)) {
      e.kind = Kind::source;
      e.piece = *source;
      e.offset = place->offset;
    } else {
      e.piece = piece(t.data(), e.bytes, t.owner());
    }
    storages_.push_back(e);
    return it->second;
  }

  std::uint64_t constant(const Tensor& t) {
    ByteWriter out;
    const bool text = t.dtype() == DataType::string;
    out.number(text ? Kind::text : Kind::block);
    out.number(static_cast<std::uint32_t>(t.dtype()));
    out.number(t.shape().size());
    for (const std::int64_t d : t.shape()) out.number(d);
    if (text) {
      out.number(static_cast<std::size_t>(t.size()));
      for (const std::string& s : t.values<std::string>()) out.text(s);
    } else {
      out.number(storage(t));
    }
    constants_.push_back(out.take());
    return constants_.size() - 1;
  }

  void lay_out(std::uint64_t at) {
    for (Piece& p : pieces_) {
      if (p.bytes >= kSmall) continue;
      p.offset = at = round_up(at, kAlign);
      at += p.bytes;
    }
    checked_ = at;
    for (Piece& p : pieces_) {
      if (p.bytes < kSmall) continue;
      p.offset = at = round_up(at, kPage);
      at += p.bytes;
    }
    total_ = at;
  }

  void write_block(ByteWriter& out, const Piece& p) {
    out.number(p.offset);
    out.number(p.bytes);
    auto [it, added] = hashes_.try_emplace(&p, 0);
    if (added && p.bytes >= kSmall) it->second = hash_block(p.data, p.bytes);
    out.raw(it->second);
  }

  std::string tables(const ModelInterface& interface, const std::vector<std::pair<std::string, std::size_t>>& packs,
                     const std::string& graph) {
    ByteWriter out;
    out.text(r_.place.conditions);
    out.text(r_.place.model.string());
    sources_.write(out);
    out.number(interface.inputs.size());
    for (std::size_t i = 0; i < interface.inputs.size(); ++i) {
      write_spec(out, interface.inputs[i]);
      out.number(static_cast<std::uint8_t>(interface.may_be_absent[i]));
    }
    out.number(interface.outputs.size());
    for (const ValueSpec& s : interface.outputs) write_spec(out, s);
    for (const auto* pairs : {&interface.metadata, &interface.custom_metadata}) {
      out.number(pairs->size());
      for (const auto& [key, value] : *pairs) {
        out.text(key);
        out.text(value);
      }
    }
    out.number(interface.warnings.size());
    for (const std::string& w : interface.warnings) out.text(w);
    out.number(storages_.size());
    for (const Entry& e : storages_) {
      out.number(e.kind);
      if (e.kind == Kind::block) {
        write_block(out, pieces_[e.piece]);
      } else {
        out.number(e.piece);
        out.number(e.offset);
        out.number(e.bytes);
      }
    }
    out.number(constants_.size());
    std::string text = out.take();
    for (const std::string& c : constants_) text += c;
    ByteWriter rest;
    rest.number(packs.size());
    for (const auto& [name, number] : packs) {
      rest.text(name);
      write_block(rest, pieces_[number]);
    }
    rest.text(graph);
    meta_bytes_ = text.size() + rest.bytes().size();
    return text + rest.bytes();
  }

  void store(const std::string& meta, NewFile& file) {
    std::string checked = meta;
    checked.resize(checked_ - sizeof(Head), '\0');
    for (const Piece& p : pieces_) {
      if (p.bytes > 0 && p.bytes < kSmall) std::memcpy(checked.data() + p.offset - sizeof(Head), p.data, p.bytes);
    }
    Head head{};
    std::memcpy(head.magic, kMagic, sizeof(kMagic));
    head.format = kFormat;
    head.order = kOrder;
    head.file_bytes = total_;
    head.checked_bytes = checked_;
    head.meta_bytes = meta_bytes_;
    const Hash128 hash = hash_head(&head, checked.data(), checked.size());
    head.hash_low = hash.low;
    head.hash_high = hash.high;
    file.write(&head, sizeof(head), 0);
    file.write(checked.data(), checked.size(), sizeof(head));
    for (const Piece& p : pieces_) {
      if (p.bytes >= kSmall) file.write(p.data, p.bytes, p.offset);
    }
    file.resize(total_);
    file.publish();
  }

  const Recording& r_;
  const Sources& sources_;
  std::set<Span> packed_;
  std::map<Span, std::uint64_t> storage_numbers_;
  std::vector<Entry> storages_;
  std::vector<std::string> constants_;
  std::vector<Piece> pieces_;
  std::map<const Piece*, std::uint64_t> hashes_;
  std::uint64_t checked_ = 0, total_ = 0, meta_bytes_ = 0;
};

void wait_until_settled(const FileStamp& stamp) {
  const std::int64_t wait = stamp.changed_ns + kTick + 1'000'000 - clock_ns();
  if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(wait, 3 * kTick)));
}

}  // namespace

std::unique_ptr<Recording> start_recording(const CompiledPlace& place) {
  const std::optional<FileStamp> stamp = file_stamp(place.model);
  if (!stamp || stamp->changed_ns > clock_ns() + kTick) return nullptr;
  wait_until_settled(*stamp);
  auto recording = std::make_unique<Recording>();
  recording->place = place;
  recording->model = *stamp;
  recording->started_ns = clock_ns();
  return recording;
}

void write_compiled(const Recording& recording, const ModelInterface& interface) noexcept {
  const fs::path& folder = recording.place.folder;
  try {
    {
      const Bench bench(folder);
      if (!bench.mine()) return;
      File::open(folder / kLock, File::For::making, 0644);
      NewFile file(folder / kFile, kCacheFileMode);  // before the model is read: where nothing can be written this is soon over
      const Sources sources(recording);
      Composer(recording, sources).write(interface, file);
    }
    if (const std::optional<FileStamp> stamp = file_stamp(folder / kFile)) wait_until_settled(*stamp);
    if (CompiledModel::open(recording.place) == nullptr) {
      log::info("'{}' cannot be used after all", (folder / kFile).string());
    }
  } catch (const std::exception& e) {
    log::warning("nothing is kept for the next start in '{}': {}", folder.string(), e.what());
  }
}

}  // namespace sdx::cache
