#pragma once
// A model as the cpu provider left it, in one file that later starts map: optimised graph, packed weights.
//
// ROOT/cpu/KEY/compiled.sdx. It is written under another name, synced, and renamed, so it is whole or not there. Its head (graph,
// tables, small constants) carries a checksum that every start verifies; so does each large block of weights. Reading hundreds of
// megabytes to verify those would cost what the cache saves, so `.sealed` beside it keeps the stamps (inode, size, times of the
// last change) that the file, and the model's files, had when their contents were last verified. Equal stamps: nobody has written
// to them. Other stamps: all checksums are verified, and whatever does not agree is made again from the model. What stamps cannot
// show is damage below the file system (a failing disk).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

#include "base/system/mapped_file.h"
#include "cache/pack_store.h"
#include "graph/graph.h"

namespace sdx::cache {

struct CompiledPlace {
  std::filesystem::path model;   // absolute
  std::filesystem::path root;    // the cache folder; empty: there is none
  std::filesystem::path folder;  // ROOT/cpu/KEY
  std::string conditions;        // build, instruction set, options: a file made under others cannot be used
};
// nullopt if no such file can serve: the cache is off, or the options ask for something that it does not hold.
std::optional<CompiledPlace> compiled_place(const std::filesystem::path& model, const SessionOptions& options);

// Whether there is a file, valid or not.
bool has_compiled(const CompiledPlace& place);
// Why nothing that is there may be used, and nothing kept; empty: it may. The log warns of it once.
std::string compiled_problem(const CompiledPlace& place);

// Describes a session's model.
struct ModelInterface {
  std::vector<ValueSpec> inputs, outputs;
  std::vector<bool> may_be_absent;  // parallel to inputs: of an optional type
  std::vector<std::pair<std::string, std::string>> metadata, custom_metadata;
  std::vector<std::string> warnings;
};

// Immutable, so thread-safe. Views of it keep it alive.
class CompiledModel final : public PackShelf, public std::enable_shared_from_this<CompiledModel> {
 public:
  // Returns null if there is no file, or none that may be used; never throws for the folder's contents. Without `mmap`, the file
  // and the model's files are copied, as SessionOptions::mmap says.
  static std::shared_ptr<const CompiledModel> open(const CompiledPlace& place, bool mmap = true);
  ~CompiledModel() override;
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  const std::filesystem::path& path() const { return file_->path(); }
  const ModelInterface& interface() const { return interface_; }
  // Types are inferred, passes done. Throws Error(invalid_model) where it is no graph after all.
  Graph graph() const;
  std::shared_ptr<const void> find(const PackKey& key, PackSources sources, std::size_t bytes) const override;
  // Whether the model's files are the same as at open().
  bool sources_unchanged() const;

 private:
  struct Source {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::string hash;
    FileStamp stamp;
    std::shared_ptr<const MappedFile> map;  // where weights are views of it
  };
  struct Block {
    std::uint64_t offset = 0, bytes = 0, hash = 0;
  };
  struct Storage {
    const void* data = nullptr;
    std::uint64_t bytes = 0;
    std::shared_ptr<const void> owner;
  };
  struct Constant {
    std::uint64_t storage = 0;
    DataType dtype = DataType::undefined;
    Shape shape;
    std::vector<std::string> texts;  // of strings
  };

  CompiledModel() = default;
  void read(const CompiledPlace& place, bool mmap);
  void read_tables(std::string_view meta, const CompiledPlace& place, std::size_t copied);
  bool trusted(const CompiledPlace& place);
  bool blocks_whole() const;
  const std::byte* block(const Block& b) const;
  std::uint64_t storage_of(const Tensor& t) const;

  std::shared_ptr<const MappedFile> file_;
  std::uint64_t checked_ = 0;  // bytes at the beginning that the head's checksum covers
  File lock_;                  // shared, while in use
  ModelInterface interface_;
  std::vector<Source> sources_;
  std::vector<Block> blocks_;
  std::vector<Storage> storages_;
  std::vector<Constant> constants_;
  std::unordered_map<std::string, Block> packs_;
  std::unordered_map<const void*, std::vector<std::uint64_t>> storage_at_;
  std::string_view graph_;
};

// Collects the parts of a compilation to keep. They are written once the session is open.
struct Recording {
  CompiledPlace place;
  FileStamp model;              // before it was read
  std::int64_t started_ns = 0;  // 1970 on
  Graph graph;                  // as it was lowered
  std::vector<PackStore::Made> packs;
};

// Before the model is read: waits until its last change lies far enough back to be told apart from a next one. Null where the
// model file is not there, or its time lies in the future.
std::unique_ptr<Recording> start_recording(const CompiledPlace& place);

// Writes and verifies the file. Never throws: parts that are not kept are made again, and the log gives the reason (info).
void write_compiled(const Recording& recording, const ModelInterface& interface) noexcept;

}  // namespace sdx::cache
