#include "providers/vulkan/device_plan.h"

#include <algorithm>

#include "base/arena/arena.h"
#include "base/error.h"
#include "providers/vulkan/operators.h"
#include "tensor/element.h"

namespace sdx::vulkan {
namespace {

constexpr std::uint64_t kAlign = 64;
constexpr std::size_t kMostIdle = 4;  // frames that wait for the next run

std::uint64_t aligned(std::uint64_t bytes) { return (std::max<std::uint64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign; }

}  // namespace

std::uint64_t ConstantStore::address(ValueId v, const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (const auto it = addresses_.find(v); it != addresses_.end()) return it->second;
  const std::uint64_t bytes = aligned(tensor.bytes());
  if (blocks_.empty() || used_ + bytes > blocks_.back()->get().bytes) {
    const std::uint64_t most = gpu_->facts().largest_allocation;
    blocks_.push_back(std::make_unique<OwnMemory>(gpu_, std::max(bytes, std::min(block_bytes_, most)), MemoryKind::device));
    used_ = 0;
  }
  const Memory& block = blocks_.back()->get();
  checked(gpu_->table().upload, gpu_->device(), &block, used_, tensor.data(), static_cast<std::uint64_t>(tensor.bytes()));
  const std::uint64_t address = block.address + used_;
  used_ += bytes;
  addresses_.emplace(v, address);
  return address;
}

DevicePlan::DevicePlan(const Graph& graph, const ops::InferResult& inferred, std::shared_ptr<const Gpu> gpu,
                       ConstantStore& constants)
    : graph_(graph), gpu_(std::move(gpu)), own_(gpu_, std::uint64_t{1} << 16) {
  take(emit(inferred), inferred, constants);
}

// Nodes whose results the host knows are left out.
Emitter DevicePlan::emit(const ops::InferResult& inferred) const {
  Emitter e(graph_, inferred, gpu_->facts());
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    const Node& node = graph_.node(id);
    const bool known = std::all_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId v) { return v == kNoValue || inferred.values.contains(v); });
    if (node.removed || known) continue;
    const Operator* op = find_operator(node);
    try {
      if (op == nullptr) fail(ErrorCode::runtime_failure, "vulkan: the elements are not known before the run");
      op->emit(e, node);
    } catch (Error& error) {
      error.add_context("in " + graph_.describe(id));
      throw;
    }
  }
  return e;
}

Operand DevicePlan::root(Operand operand, std::uint64_t& offset) const {
  while (operand < aliases_.size() && aliases_[operand]) {
    offset += aliases_[operand]->offset;
    operand = aliases_[operand]->of;
  }
  return operand;
}

void DevicePlan::place_constants(const Emitter& e, const std::vector<bool>& written, ConstantStore& constants) {
  std::vector<bool> done(places_.size(), false);
  const auto place = [&](Operand operand) {
    std::uint64_t offset = 0;
    const Operand r = root(operand, offset);
    if (written[r] || done[r]) return;
    done[r] = true;
    if (r >= graph_.values().size()) {
      const auto& words = e.extras()[r - graph_.values().size()].words;
      const Tensor table = Tensor::of<std::uint32_t>({static_cast<std::int64_t>(words.size())}, std::span(words));
      if (!words.empty()) places_[r] = {false, own_.address(r, table), table.bytes()};
      return;
    }
    const Tensor* tensor = e.known(r);
    if (tensor == nullptr) return;  // an input
    // Shaders know no narrower floating numbers.
    const bool narrow = tensor->dtype() == DataType::float16 || tensor->dtype() == DataType::bfloat16;
    const Tensor whole = narrow ? to_float32(tensor->aligned()) : *tensor;
    const bool own = !graph_.value(r).constant;
    places_[r] = {false, (own ? own_ : constants).address(r, whole), whole.bytes()};
  };
  for (const Dispatch& d : dispatches_) {
    for (const Patch& p : d.patches) place(p.operand);
  }
}

void DevicePlan::take(const Emitter& e, const ops::InferResult& inferred, ConstantStore& constants) {
  dispatches_ = e.dispatches();
  aliases_ = e.aliases();
  const std::size_t values = graph_.values().size();
  places_.resize(values + e.extras().size());
  std::vector<bool> written(places_.size(), false);
  for (const Dispatch& d : dispatches_) {
    for (const Patch& p : d.patches) {
      std::uint64_t offset = 0;
      if (p.writes) written[root(p.operand, offset)] = true;
    }
  }
  place_constants(e, written, constants);
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ValueId v = graph_.inputs()[i];
    const std::uint64_t bytes = e.bytes(v);
    inputs_.push_back({i, v, upload_bytes_, bytes, {}, e.type(v), e.shape(v)});
    upload_bytes_ += aligned(bytes);
  }
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId v = graph_.outputs()[i];
    Transfer t{i, v, download_bytes_, e.bytes(v), {}, e.type(v), e.shape(v)};
    std::uint64_t offset = 0;
    const Operand r = root(v, offset);
    const Tensor* known = r < values && !written[r] && !graph_.value(r).is_input ? e.known(r) : nullptr;
    if (const auto it = inferred.values.find(v); it != inferred.values.end()) known = &it->second;
    if (known != nullptr) {
      if (offset != 0) fail(ErrorCode::not_implemented, "vulkan: a part of a constant is a result");
      t.known = known->reshaped(t.shape);
    } else {
      download_bytes_ += aligned(t.bytes);
    }
    outputs_.push_back(std::move(t));
  }
  for (const Emitter::Status& s : e.statuses()) {
    statuses_.push_back({statuses_.size(), s.operand, download_bytes_, 4, {}, DataType::uint32, {}});
    messages_.push_back(s.message);
    download_bytes_ += kAlign;
  }
  lay_out(e);
}

// Steps: 0 copies inputs, dispatch i is step i + 1, the last copies results.
void DevicePlan::lay_out(const Emitter& e) {
  const std::size_t values = graph_.values().size();
  const auto last_step = static_cast<std::uint32_t>(dispatches_.size() + 1);
  std::vector<std::optional<BufferRequest>> requests(places_.size());
  const auto use = [&](Operand operand, std::uint32_t step) {
    std::uint64_t offset = 0;
    const Operand r = root(operand, offset);
    if (places_[r].at != 0) return;  // a constant
    if (!requests[r]) {
      const std::uint64_t bytes = r < values ? e.bytes(r) : e.extras()[r - values].bytes;
      places_[r] = {true, 0, bytes};
      requests[r] = BufferRequest{static_cast<std::size_t>(aligned(bytes)), step, step, 0};
    }
    requests[r]->last = std::max(requests[r]->last, step);
  };
  for (const Transfer& t : inputs_) use(t.operand, 0);
  for (std::uint32_t i = 0; i < dispatches_.size(); ++i) {
    for (const Patch& p : dispatches_[i].patches) use(p.operand, i + 1);
  }
  for (const Transfer& t : outputs_) {
    if (!t.known.defined()) use(t.operand, last_step);
  }
  for (const Transfer& t : statuses_) use(t.operand, last_step);
  std::vector<BufferRequest> list;
  for (const auto& r : requests) {
    if (r) list.push_back(*r);
  }
  arena_bytes_ = assign_offsets(list);
  std::size_t at = 0;
  for (Operand o = 0; o < places_.size(); ++o) {
    if (requests[o]) places_[o].at = list[at++].offset;
  }
}

// Whether a command that touches these ranges must wait for those since the last barrier; keeps `open` up to date.
bool DevicePlan::must_wait(std::vector<Range>& open, const std::vector<Range>& touched) const {
  const bool wait = std::any_of(open.begin(), open.end(), [&](const Range& a) {
    return std::any_of(touched.begin(), touched.end(),
                       [&](const Range& b) { return (a.written || b.written) && a.begin < b.end && b.begin < a.end; });
  });
  if (wait) open.clear();
  open.insert(open.end(), touched.begin(), touched.end());
  return wait;
}

std::unique_ptr<DeviceFrame> DevicePlan::make_frame() const {
  auto frame = std::make_unique<DeviceFrame>();
  frame->arena = std::make_unique<OwnMemory>(gpu_, arena_bytes_, MemoryKind::device);
  frame->upload = std::make_unique<OwnMemory>(gpu_, upload_bytes_, MemoryKind::upload);
  frame->download = std::make_unique<OwnMemory>(gpu_, download_bytes_, MemoryKind::download);
  std::vector<Command> commands;
  std::vector<Copy> copies;
  copies.reserve(inputs_.size() + outputs_.size() + statuses_.size());
  std::vector<Range> open;
  const auto copy = [&](const Transfer& t, bool in) {
    if (t.bytes == 0) return;
    std::uint64_t offset = 0;
    const Operand r = root(t.operand, offset);
    const std::uint64_t at = places_[r].at + offset;
    const Memory *arena = &frame->arena->get(), *staging = in ? &frame->upload->get() : &frame->download->get();
    copies.push_back({in ? staging : arena, in ? arena : staging, in ? t.staging : at, in ? at : t.staging, t.bytes});
    Command c{};
    c.copy = &copies.back();
    c.barrier = must_wait(open, {{at, at + t.bytes, in}}) ? 1 : 0;
    commands.push_back(c);
  };
  for (const Transfer& t : inputs_) copy(t, true);
  for (const Dispatch& d : dispatches_) {
    Command c = d.command;
    std::vector<Range> touched;
    for (const Patch& p : d.patches) {
      std::uint64_t offset = p.offset;
      const Operand r = root(p.operand, offset);
      const Place& place = places_[r];
      if (place.in_arena) touched.push_back({place.at, place.at + place.bytes, p.writes});
      const std::uint64_t address = (place.in_arena ? frame->arena->get().address : 0) + place.at + offset;
      std::memcpy(c.push + p.at, &address, sizeof address);
    }
    c.barrier = must_wait(open, touched) ? 1 : 0;
    commands.push_back(c);
  }
  for (const Transfer& t : outputs_) {
    if (!t.known.defined()) copy(t, false);
  }
  for (const Transfer& t : statuses_) copy(t, false);
  frame->recording = std::make_unique<OwnRecording>(gpu_, commands);
  return frame;
}

void DevicePlan::check_statuses(const DeviceFrame& frame) const {
  for (const Transfer& t : statuses_) {
    std::uint32_t word = 0;
    std::memcpy(&word, frame.download->mapped() + t.staging, sizeof word);
    if (word != 0) fail(ErrorCode::invalid_argument, "{}", messages_[t.index]);
  }
}

void DevicePlan::run(const std::vector<const Tensor*>& inputs, const std::vector<Value*>& outputs, const StopCondition& stop) {
  std::unique_ptr<DeviceFrame> frame;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      frame = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!frame) frame = make_frame();
  for (const Transfer& t : inputs_) std::memcpy(frame->upload->mapped() + t.staging, inputs[t.index]->data(), t.bytes);
  frame->recording->run(stop);
  check_statuses(*frame);
  for (const Transfer& t : outputs_) {
    if (outputs[t.index] == nullptr) continue;
    if (t.known.defined()) {
      *outputs[t.index] = t.known;
      continue;
    }
    Tensor result(t.type, t.shape);
    if (t.bytes > 0) std::memcpy(result.mutable_data(), frame->download->mapped() + t.staging, t.bytes);
    *outputs[t.index] = std::move(result);
  }
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(frame));
}

}  // namespace sdx::vulkan
