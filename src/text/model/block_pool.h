#pragma once
// Keys and values of many texts, in blocks of tokens that come and go; and their states, in slots that do.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::text {

struct CacheLayout {
  static constexpr std::int64_t kBlockTokens = 64;

  std::int64_t layers = 0, kv_heads = 0, head_size = 0;
  DataType type = DataType::float32;  // int8: with a float32 scale for each row
  // Without layers: what a block holds instead, the float32 states of one text.
  std::vector<Shape> states{};

  // What a block has, in the order of BlockPool's arrays.
  struct Array {
    DataType type;
    Shape shape;
    bool scales;
  };
  std::vector<Array> arrays() const;
  std::uint64_t block_bytes() const;  // of all arrays
};

// Address space for all blocks is taken at once, memory as blocks are used. Free blocks keep theirs as long as there are no more
// of them than 64, or than are in use, and than 128 MiB hold; what is beyond goes back to the system. Thread-safe; memory of
// blocks is their users' to guard.
class BlockPool {
 public:
  // Fewer blocks where the system refuses so much address space. Throws Error(out_of_memory) where it refuses the least.
  // `states`: the pool with the slots of the same texts' states; null: they have none.
  BlockPool(const CacheLayout& layout, std::int64_t blocks, std::shared_ptr<BlockPool> states = nullptr);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  std::int32_t take();  // with one reference; -1: there is none left
  void share(std::span<const std::int32_t> blocks);
  void drop(std::span<const std::int32_t> blocks);
  int references(std::int32_t block) const;
  void copy(std::int32_t from, std::int32_t to);  // what is in it

  const CacheLayout& layout() const { return layout_; }
  const std::shared_ptr<BlockPool>& states() const { return states_; }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t in_use() const;
  std::uint64_t resident_bytes() const;  // of blocks in use, and of free ones that keep their memory

  // Keys of layer 0, values of layer 0, keys of layer 1, …: [blocks, kv_heads, kBlockTokens, head_size]; the scales, for int8
  // alone, [blocks, kv_heads, kBlockTokens]. Or the states.
  const std::vector<Tensor>& caches() const { return caches_; }
  const std::vector<Tensor>& scales() const { return scales_; }

 private:
  struct Memory;
  void map();
  void give_back(std::vector<std::int32_t> blocks);

  CacheLayout layout_;
  std::int64_t capacity_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<BlockPool> states_;
  std::vector<Tensor> caches_, scales_;

  mutable std::mutex mutex_;
  std::vector<std::uint32_t> references_;
  std::vector<std::int32_t> warm_, cold_;  // free: with memory (the last one was used last), and without
  std::int32_t fresh_ = 0;                 // blocks from here on were never used
  std::int64_t in_use_ = 0;
};

// Blocks of one text. Copies share them.
class BlockList {
 public:
  BlockList() = default;
  explicit BlockList(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  ~BlockList() { resize(0); }
  BlockList(const BlockList& other);
  BlockList(BlockList&& other) noexcept : pool_(std::move(other.pool_)), ids_(std::move(other.ids_)) { other.ids_.clear(); }
  BlockList& operator=(BlockList other) noexcept;

  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  // Makes room for `tokens`; the first `kept` stay, and the others may be written. Shared blocks after the kept ones are
  // therefore replaced by copies. False: the pool has too few blocks; then nothing has changed, except that some blocks may have
  // been added.
  bool reserve(std::int64_t kept, std::int64_t tokens);
  void resize(std::size_t count);                      // drops those behind
  void add_shared(std::span<const std::int32_t> ids);  // of the same pool

 private:
  std::shared_ptr<BlockPool> pool_;
  std::vector<std::int32_t> ids_;
};

}  // namespace sdx::text
