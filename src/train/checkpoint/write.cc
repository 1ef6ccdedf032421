#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "checkpoint_generated.h"
#include "train/checkpoint/format.h"

namespace sdx::train {
namespace {

namespace fs = std::filesystem;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr std::int32_t kVersion = 2;
constexpr std::uint64_t kAlignment = 64;       // of tensors in the second file: a cache line
constexpr std::uint64_t kLeastExternal = 256;  // smaller ones cost less where they are
constexpr std::uint64_t kMostDescribed = 100'000'000;
constexpr std::size_t kFirst = 4096;

std::uint64_t aligned(std::uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

template <class F>
void each_tensor(const CheckpointState& state, bool optimizers, F&& f) {
  for (const Parameter& p : state.parameters) f(p.name, p.value);
  if (!optimizers) return;
  for (const auto& [group, s] : state.optimizers) {
    for (const auto& [parameter, moments] : s.moments) {
      for (const auto& [name, moment] : moments) f(name, moment);
    }
  }
}

// Bytes in tensors, and about what all else takes.
struct Amount {
  std::uint64_t tensors = 0, rest = kFirst;
};

Amount amount_of(const CheckpointState& state, bool optimizers) {
  constexpr std::uint64_t kEach = 160;  // tables, and what aligns them
  Amount a;
  each_tensor(state, optimizers, [&](const std::string& name, const Tensor& t) {
    if (!state.nominal) a.tensors += t.bytes();
    a.rest += kEach + name.size() + t.rank() * sizeof(std::int64_t);
  });
  for (const auto& [name, value] : state.properties) {
    const auto* text = std::get_if<std::string>(&value);
    a.rest += kEach + name.size() + (text == nullptr ? 0 : text->size());
  }
  for (const auto& [group, s] : state.optimizers) {
    for (const auto& [parameter, moments] : s.moments) a.rest += kEach + parameter.size();
  }
  return a;
}

void check(const CheckpointState& state, bool optimizers, const Amount& amount) {
  if (amount.rest > kMostDescribed) {
    fail(ErrorCode::invalid_argument, "names and properties of the checkpoint take {} bytes; at most {} are possible",
         amount.rest, kMostDescribed);
  }
  std::set<std::string_view> names;
  for (const Parameter& p : state.parameters) {
    if (!names.insert(p.name).second) fail(ErrorCode::invalid_argument, "two parameters are called '{}'", p.name);
  }
  each_tensor(state, optimizers, [&](const std::string& name, const Tensor& t) {
    if (bit_width(t.dtype()) == 0) {
      fail(ErrorCode::invalid_argument, "'{}' is {}; checkpoints hold tensors of numbers and bool", name, t.type_string());
    }
    if (!state.nominal && t.data() == nullptr && t.bytes() != 0) fail(ErrorCode::invalid_argument, "'{}' has no values", name);
  });
}

// A tensor for the second file, and its position.
struct Placed {
  Tensor tensor;
  std::uint64_t at = 0;
};

class Encoder {
 public:
  // `external`: the beginning of the second file's free part; nothing: all is in one file.
  Encoder(const CheckpointState& state, const Amount& amount, std::optional<std::uint64_t> external)
      : state_(state), builder_(external ? amount.rest : amount.rest + amount.tensors), external_(external) {}

  const std::vector<Placed>& placed() const { return placed_; }

  std::span<const std::byte> encode(bool optimizers) {
    const auto parameters = parameters_of();
    std::vector<Offset<file::OptimizerGroup>> groups;
    if (optimizers) {
      for (const auto& [name, s] : state_.optimizers) groups.push_back(group(name, s));
    }
    const auto group_list = builder_.CreateVector(groups);
    const auto properties = properties_of();
    file::FinishCheckpointBuffer(builder_,
                                 file::CreateCheckpoint(builder_, kVersion, parameters, optimizers ? group_list : 0, properties));
    return std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  }

 private:
  using Tensors = std::vector<Offset<file::Tensor>>;

  Offset<file::Tensor> tensor(const std::string& name, const Tensor& t) {
    const auto called = builder_.CreateString(name);
    const auto extents = builder_.CreateVector(t.shape());
    const std::size_t bytes = state_.nominal ? 0 : t.bytes();
    const int type = static_cast<int>(t.dtype());
    if (external_ && bytes >= kLeastExternal) {
      const std::uint64_t at = aligned(*external_);
      placed_.push_back({t, at});
      external_ = at + bytes;
      return file::CreateTensor(builder_, called, 0, extents, type, 0, 0, static_cast<std::int64_t>(at));
    }
    const auto content = builder_.CreateVector(static_cast<const std::uint8_t*>(t.data()), bytes);
    return file::CreateTensor(builder_, called, 0, extents, type, content);
  }

  Offset<file::Parameters> parameters_of() {
    Tensors trained, frozen;
    for (const Parameter& p : state_.parameters) (p.requires_grad ? trained : frozen).push_back(tensor(p.name, p.value));
    const auto trained_list = builder_.CreateVector(trained);
    const auto frozen_list = builder_.CreateVector(frozen);
    return file::CreateParameters(builder_, trained_list, frozen_list, state_.nominal, external_.has_value());
  }

  Offset<file::OptimizerGroup> group(const std::string& name, const OptimizerState& s) {
    std::vector<Offset<file::Moments>> all;
    for (const auto& [parameter, moments] : s.moments) {
      Tensors tensors;
      for (const auto& [moment, value] : moments) tensors.push_back(tensor(moment, value));
      const auto called = builder_.CreateString(parameter);
      all.push_back(file::CreateMoments(builder_, called, builder_.CreateVector(tensors)));
    }
    const auto called = builder_.CreateString(name);
    return file::CreateOptimizerGroup(builder_, called, s.step, s.initial_learning_rate, builder_.CreateVector(all));
  }

  Offset<file::Properties> properties_of() {
    std::vector<Offset<file::Whole>> wholes;
    std::vector<Offset<file::Real>> reals;
    std::vector<Offset<file::Text>> texts;
    for (const auto& [name, value] : state_.properties) {
      const auto called = builder_.CreateString(name);
      if (const auto* whole = std::get_if<std::int64_t>(&value)) {
        wholes.push_back(file::CreateWhole(builder_, called, *whole));
      } else if (const auto* real = std::get_if<float>(&value)) {
        reals.push_back(file::CreateReal(builder_, called, *real));
      } else {
        texts.push_back(file::CreateText(builder_, called, builder_.CreateString(std::get<std::string>(value))));
      }
    }
    const auto whole_list = builder_.CreateVector(wholes);
    const auto real_list = builder_.CreateVector(reals);
    return file::CreateProperties(builder_, whole_list, real_list, builder_.CreateVector(texts));
  }

  const CheckpointState& state_;
  FlatBufferBuilder builder_;
  std::optional<std::uint64_t> external_;
  std::vector<Placed> placed_;
};

// An existing file, part of which is rewritten.
class OldFile {
 public:
  explicit OldFile(const fs::path& path) : path_(path), file_(File::open(path, File::For::changing)) {
    if (!file_) io("open");
  }
  OldFile(const OldFile&) = delete;
  OldFile& operator=(const OldFile&) = delete;

  void write(const void* data, std::uint64_t bytes, std::uint64_t offset) const {
    if (!file_.write_at(data, bytes, offset)) io("write");
  }
  void publish() {
    if (!file_.sync()) io("sync");
    if (!file_.close()) io("write");
  }

 private:
  [[noreturn]] void io(const char* what) const {
    const int error = errno;
    fail(ErrorCode::io, "cannot {} '{}': {}", what, path_.string(), std::strerror(error));
  }
  fs::path path_;
  File file_;
};

// The part of the second file that the checkpoint at `path` uses.
std::optional<Extent> taken_at(const fs::path& path) {
  std::error_code none;
  if (!fs::is_regular_file(external_path(path), none) || !fs::is_regular_file(path, none)) return std::nullopt;
  try {
    return external_extent(MappedFile::open(path)->bytes(), MappedFile::open(external_path(path))->bytes());
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_placed(auto&& to, const std::vector<Placed>& placed) {
  for (const Placed& p : placed) to.write(p.tensor.data(), p.tensor.bytes(), p.at);
  to.publish();
}

// Two files cannot be renamed at once. So the new tensors go to where the old checkpoint has none, before or behind its own, and
// the old one is whole until the first file is renamed. The second file then has at most twice the size.
void save_external(const CheckpointState& state, const fs::path& path, bool optimizers, const Amount& amount) {
  const std::optional<Extent> taken = taken_at(path);
  std::uint64_t needed = 0;
  if (taken) {
    Encoder measure(state, amount, 0);
    (void)measure.encode(optimizers);
    if (!measure.placed().empty()) needed = measure.placed().back().at + measure.placed().back().tensor.bytes();
  }
  Encoder encoder(state, amount, taken && taken->begin < needed ? taken->end : 0);
  const std::span<const std::byte> bytes = encoder.encode(optimizers);
  if (taken) {
    write_placed(OldFile(external_path(path)), encoder.placed());
  } else {
    write_placed(NewFile(external_path(path)), encoder.placed());
  }
  write_file_atomically(path, bytes);
}

}  // namespace

void save_checkpoint(const CheckpointState& state, const fs::path& path, bool include_optimizer_state,
                     std::uint64_t most_inline) {
  const Amount amount = amount_of(state, include_optimizer_state);
  check(state, include_optimizer_state, amount);
  if (amount.tensors > most_inline) return save_external(state, path, include_optimizer_state, amount);
  const bool had_external = taken_at(path).has_value();
  Encoder encoder(state, amount, std::nullopt);
  write_file_atomically(path, encoder.encode(include_optimizer_state));
  std::error_code none;
  if (had_external) fs::remove(external_path(path), none);
}

// The second file is copied, because parts of it are written where they lie.
void keep_checkpoint(const fs::path& path, const fs::path& as) {
  std::error_code error;
  const bool external = taken_at(path).has_value();
  for (const fs::path& old : {as, external_path(as)}) fs::remove(old, error);
  if (external) fs::copy_file(external_path(path), external_path(as), error);
  if (!external || !error) {
    fs::create_hard_link(path, as, error);
    if (error) fs::copy_file(path, as, error);
  }
  if (error) fail(ErrorCode::io, "cannot keep '{}' as '{}': {}", path.string(), as.string(), error.message());
}

void CheckpointState::save(const fs::path& path, bool include_optimizer_state) const {
  save_checkpoint(*this, path, include_optimizer_state, kMostInline);
}

std::vector<std::byte> CheckpointState::bytes(bool include_optimizer_state) const {
  const Amount amount = amount_of(*this, include_optimizer_state);
  check(*this, include_optimizer_state, amount);
  if (amount.tensors > kMostInline) {
    fail(ErrorCode::invalid_argument, "the checkpoint's tensors have {} bytes; up to {} fit into one buffer: save it to a file",
         amount.tensors, kMostInline);
  }
  Encoder encoder(*this, amount, std::nullopt);
  const std::span<const std::byte> made = encoder.encode(include_optimizer_state);
  return {made.begin(), made.end()};
}

}  // namespace sdx::train
