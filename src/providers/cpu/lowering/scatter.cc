// ScatterND with constant indices, as exporters write assignments to slices. The indices, one coordinate for each axis, become
// stretches of elements that follow each other.

#include <algorithm>
#include <vector>

#include "base/copy_bytes.h"
#include "base/thread_pool.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 65536;  // bytes that are worth a thread

struct Stretch {
  std::int64_t to = 0, from = 0, bytes = 0;
};

// Returns the stretches in the order of the updates.
std::vector<Stretch> stretches_of(const ops::NdOffsets& offsets, std::int64_t element_bytes) {
  std::vector<Stretch> list;
  const std::int64_t run = offsets.run() * element_bytes;
  for (std::int64_t i = 0; i < offsets.count(); ++i) {
    const std::int64_t to = offsets.at(i) * element_bytes;
    if (!list.empty() && list.back().to + list.back().bytes == to) {
      list.back().bytes += run;
    } else {
      list.push_back({to, i * run, run});
    }
  }
  return list;
}

// Tells whether stretches ascend. Otherwise elements may be updated several times, and the last update counts.
bool ascend(const std::vector<Stretch>& list) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i].to < list[i - 1].to + list[i - 1].bytes) return false;
  }
  return true;
}

class ScatterStretches : public Kernel {
 public:
  ScatterStretches(std::vector<Stretch> list, bool own) : list_(std::move(list)), ascend_(ascend(list_)), own_(own) {
    for (const Stretch& s : list_) bytes_ += s.bytes;
  }
  std::string_view name() const override { return "scatter-stretches"; }
  bool uses_input(std::size_t i) const override { return i != 1; }
  int in_place() const override { return own_ ? -1 : 0; }
  bool accepts_unaligned(std::size_t) const override { return true; }

  void run(const KernelContext& c) const override {
    const Tensor& data = c.input(0);
    const auto* from = static_cast<const std::byte*>(c.input(2).data());
    auto* to = static_cast<std::byte*>(c.output(0).mutable_data());
    if (to != data.data()) ops::copy_all(data, c.output(0));
    const auto count = static_cast<std::int64_t>(list_.size());
    const auto put = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Stretch& s = list_[static_cast<std::size_t>(i)];
        copy_bytes(to + s.to, from + s.from, static_cast<std::size_t>(s.bytes));
      }
    };
    if (!ascend_ || count == 0) return put(0, count);
    parallel_for(count, std::max<std::int64_t>(1, kGrain * count / std::max<std::int64_t>(1, bytes_)), put);
  }

 private:
  std::vector<Stretch> list_;
  bool ascend_;
  bool own_;  // the updates are the data itself
  std::int64_t bytes_ = 0;
};

std::unique_ptr<Kernel> make_scatter_nd(LowerContext& c) {
  const std::size_t bits = bit_width(c.dtype(0));
  if (c.dtype(0) == DataType::string || bits == 0 || bits % 8 != 0) return c.refuse("strings and elements below one byte");
  if (ops::parse<ops::ScatterAttrs>(c).reduction != "none") return c.refuse("a reduction");
  const Tensor* const indices = c.constant(1);
  if (indices == nullptr) return c.refuse("indices that are not constant");
  if (!c.input(0).has_static_shape() || !c.input(2).has_static_shape()) return c.refuse("extents are not known");
  const Shape data = to_shape(*c.shape(0));
  try {
    if (to_shape(*c.shape(2)) != ops::scatter_nd_updates(data, indices->shape()) || c.dtype(2) != c.dtype(0)) {
      return c.refuse("updates that do not fit");
    }
    const bool own = c.node().inputs[2] == c.node().inputs[0];
    const ops::NdOffsets offsets(data, indices->aligned(), 0);
    return std::make_unique<ScatterStretches>(stretches_of(offsets, static_cast<std::int64_t>(bits) / 8), own);
  } catch (const Error& e) {  // a run says which
    return c.refuse(e.what());
  }
}

}  // namespace

void register_kernels_scatter(KernelTable& t) { t.add("", "ScatterND", "scatter-stretches", 10, make_scatter_nd); }

}  // namespace sdx::cpu
