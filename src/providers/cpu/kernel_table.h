#pragma once
// The kernels of the `cpu` provider for an operator, best first.

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/pack_store.h"
#include "providers/cpu/packed.h"
#include "providers/interface/kernel.h"

namespace sdx::cpu {

// The information for a kernel's maker. Types are inferred; extents may be symbolic or unknown.
class LowerContext {
 public:
  // `packs`: see LowerOptions. `wanted`: the kernel to choose if there is a choice; empty: the cost model's.
  LowerContext(const Graph& graph, NodeId id, cache::PackStore* packs = nullptr, std::string_view wanted = {})
      : graph_(graph), node_(graph.node(id)), packs_(packs), wanted_(wanted) {}

  const Node& node() const { return node_; }
  const Attributes& attrs() const { return node_.attributes; }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  bool has_output(std::size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }
  const Type& input(std::size_t i) const;  // unknown when left out
  const Type& output(std::size_t i) const;
  DataType dtype(std::size_t i) const { return input(i).elem; }
  const SymShape* shape(std::size_t i) const { return input(i).shape ? &*input(i).shape : nullptr; }
  // The input's value when it is a constant that no caller can override; possibly unaligned, see Tensor::is_aligned().
  const Tensor* constant(std::size_t i) const;

  // Returns `bytes` bytes that `fill` writes, 64-byte aligned: a constant in the kernel's own order. They may come from an
  // earlier call with the same key and sources, or from a compiled model; then `fill` is not called. So the key must name
  // everything that the bytes depend on besides the sources (constant(i), null where left out) and the instruction set:
  // algorithm, extents, factors.
  Packed pack(std::initializer_list<const Tensor*> sources, std::size_t bytes, const cache::PackKey& key,
              const std::function<void(float*)>& fill);
  // Whether the compilation is recorded: then weights are packed at once, to be written when it is done.
  bool records_packs() const { return packs_ != nullptr && packs_->records(); }

  // Returns the index of the kernel to make; `kernels` are the candidates for this node, best by the cost model first. Their
  // names are kept in offered(), from which measuring may choose.
  std::size_t choose(std::vector<std::string_view> kernels);
  const std::vector<std::string_view>& offered() const { return offered_; }

  // Says why the kernel does not take this node; returns null for the maker to return.
  std::nullptr_t refuse(std::string reason) {
    reason_ = std::move(reason);
    return nullptr;
  }
  const std::string& reason() const { return reason_; }

 private:
  const Graph& graph_;
  const Node& node_;
  cache::PackStore* packs_;
  std::string_view wanted_;
  std::vector<std::string_view> offered_;
  std::string reason_;
};

// Returns null after LowerContext::refuse(). Does the expensive work: packs constant weights.
using MakeKernel = std::unique_ptr<Kernel> (*)(LowerContext&);

struct KernelEntry {
  std::string domain;  // "" is ai.onnx
  std::string op;
  std::string name;  // shown by `sdx explain`
  int rank;          // lower is better
  MakeKernel make;
};

// Every file src/providers/cpu/lowering/<name>.cc defines `void register_kernels_<name>(KernelTable&)`; the list of calls is
// generated from the file names.
class KernelTable {
 public:
  void add(std::string domain, std::string op, std::string name, int rank, MakeKernel make);
  // Best first.
  std::vector<const KernelEntry*> find(std::string_view domain, std::string_view op) const;
  void finish();
  const std::vector<KernelEntry>& all() const { return entries_; }

 private:
  std::vector<KernelEntry> entries_;
};

// Built at first use; immutable afterwards.
const KernelTable& kernel_table();

// Runs the operator's reference kernel.
std::unique_ptr<Kernel> make_reference(const Node& node);

}  // namespace sdx::cpu
