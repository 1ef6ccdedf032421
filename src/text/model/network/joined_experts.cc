#include "text/model/network/joined_experts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"

namespace sdx::text {
namespace {

constexpr std::string_view kPart = "mlp.experts.";
constexpr std::int64_t kBlock = 32, kBlockBytes = 17;  // of MXFP4

class Layer {
 public:
  Layer(const std::map<std::string, Tensor>& given, const std::string& prefix, const DecoderConfig& c, TensorFiles& to)
      : given_(given), prefix_(prefix), experts_(c.experts.count), k_(c.width), f_(c.experts.feed_forward), to_(to) {}

  void add() {
    product("gate_up_proj", 2 * f_, k_, {"ffn_gate_exps", "ffn_up_exps"});
    product("down_proj", k_, f_, {"ffn_down_exps"});
  }

 private:
  const Tensor* find(const std::string& name) const {
    const auto at = given_.find(std::string(kPart) + name);
    return at == given_.end() ? nullptr : &at->second;
  }
  const Tensor& tensor(const std::string& name, const Shape& shape) const {
    const Tensor* t = find(name);
    if (t == nullptr) fail(ErrorCode::invalid_model, "the model lacks the tensor '{}{}' of {}", kPart, name, prefix_);
    if (t->shape() != shape) {
      fail(ErrorCode::invalid_model, "tensor '{}{}' of {} is {}, expected {}", kPart, name, prefix_, t->type_string(),
           to_string(shape));
    }
    return *t;
  }

  // A matrix [n, k] of each expert, whose rows belong to the tensors of `names` in turn, and its bias.
  void product(const std::string& name, std::int64_t n, std::int64_t k, const std::vector<std::string>& names) {
    const auto parts = static_cast<std::int64_t>(names.size());
    const bool floats = find(name) != nullptr;
    const Tensor& bias = tensor(name + "_bias", {experts_, n});
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::string& to = names[static_cast<std::size_t>(part)];
      if (floats) {
        columns(tensor(name, {experts_, k, n}), n, k, part, parts, to + ".weight");
      } else {
        blocks(name, n, k, part, parts, to + ".weight");
      }
      rows(bias, n, part, parts, to + ".bias");
    }
  }

  void rows(const Tensor& bias, std::int64_t n, std::int64_t part, std::int64_t parts, const std::string& name) {
    const std::size_t size = element_size(bias, name);
    char* out = room(name, bias.dtype(), {experts_, n / parts}, size);
    const auto* from = static_cast<const char*>(bias.data());
    for (std::int64_t i = 0; i < experts_ * n / parts; ++i)
      std::memcpy(out + static_cast<std::size_t>(i) * size, from + static_cast<std::size_t>(i * parts + part) * size, size);
  }

  void columns(const Tensor& t, std::int64_t n, std::int64_t k, std::int64_t part, std::int64_t parts, const std::string& name) {
    const std::size_t size = element_size(t, name);
    char* out = room(name, t.dtype(), {experts_, n / parts, k}, size);
    const auto* from = static_cast<const char*>(t.data());
    in_parallel(experts_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t e = first; e < last; ++e) {
        for (std::int64_t j = 0; j < n / parts; ++j) {
          for (std::int64_t i = 0; i < k; ++i) {
            std::memcpy(out + static_cast<std::size_t>((e * (n / parts) + j) * k + i) * size,
                        from + static_cast<std::size_t>((e * k + i) * n + j * parts + part) * size, size);
          }
        }
      }
    });
  }

  void blocks(const std::string& base, std::int64_t n, std::int64_t k, std::int64_t part, std::int64_t parts,
              const std::string& name) {
    if (k % kBlock != 0) fail(ErrorCode::invalid_model, "{} elements do not divide into blocks of {}", k, kBlock);
    const std::int64_t count = k / kBlock, n_out = n / parts;
    const Tensor &codes = tensor(base + "_blocks", {experts_, n, count, kBlock / 2}),
                 &scales = tensor(base + "_scales", {experts_, n, count});
    for (const Tensor* t : {&codes, &scales}) {
      if (t->dtype() != DataType::uint8)
        fail(ErrorCode::invalid_model, "blocks and scales of '{}{}' must be U8, received {}", kPart, base, t->type_string());
    }
    auto* out = reinterpret_cast<std::uint8_t*>(memory(experts_ * n_out * count * kBlockBytes));
    add_tensor(name, static_cast<std::uint32_t>(GgmlType::mxfp4), {experts_, n_out, k}, experts_ * n_out * count * kBlockBytes);
    const auto *from = static_cast<const std::uint8_t*>(codes.data()), *scale = static_cast<const std::uint8_t*>(scales.data());
    in_parallel(experts_ * n_out, 64, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t row = (r / n_out * n) + r % n_out * parts + part;
        for (std::int64_t b = 0; b < count; ++b) {
          const std::uint8_t* q = from + (row * count + b) * (kBlock / 2);
          std::uint8_t* to = out + (r * count + b) * kBlockBytes;
          to[0] = scale[row * count + b];
          // There neighbours share a byte, here the halves of a block do.
          for (int i = 0; i < 16; ++i) {
            const int low = i % 2 == 0 ? q[i / 2] & 15 : q[i / 2] >> 4, high = i % 2 == 0 ? q[8 + i / 2] & 15 : q[8 + i / 2] >> 4;
            to[1 + i] = static_cast<std::uint8_t>(low | high << 4);
          }
        }
      }
    });
  }

  std::size_t element_size(const Tensor& t, const std::string& name) const {
    if (t.dtype() == DataType::float32) return 4;
    if (t.dtype() == DataType::float16 || t.dtype() == DataType::bfloat16) return 2;
    fail(ErrorCode::not_implemented, "what '{}{}' is made of is {}: weights must be F32, F16 or BF16", prefix_, name,
         t.type_string());
  }

  // Memory that the files keep, and the tensor in it.
  char* memory(std::int64_t bytes) {
    auto owned = std::make_shared<Tensor>(DataType::uint8, Shape{bytes});
    auto* at = static_cast<std::byte*>(owned->mutable_data());
    to_.add_file({}, {at, static_cast<std::size_t>(bytes)}, owned);
    return reinterpret_cast<char*>(at);
  }
  char* room(const std::string& name, DataType type, std::vector<std::int64_t> shape, std::size_t size) {
    const std::int64_t bytes = element_count(shape) * static_cast<std::int64_t>(size);
    char* at = memory(bytes);
    const GgmlType stored = type == DataType::float32   ? GgmlType::f32
                            : type == DataType::float16 ? GgmlType::f16
                                                        : GgmlType::bf16;
    add_tensor(name, static_cast<std::uint32_t>(stored), std::move(shape), bytes);
    return at;
  }
  void add_tensor(const std::string& name, std::uint32_t type, std::vector<std::int64_t> shape, std::int64_t bytes) {
    StoredTensor t;
    t.name = prefix_ + name;
    t.type = type;
    t.shape = std::move(shape);
    t.file = to_.paths().size() - 1;
    t.data = to_.bytes(t.file).first(static_cast<std::size_t>(bytes));
    if (!to_.add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}{}' occurs twice", prefix_, name);
  }

  const std::map<std::string, Tensor>& given_;
  const std::string& prefix_;
  std::int64_t experts_, k_, f_;
  TensorFiles& to_;
};

}  // namespace

bool is_joined_expert(std::string_view name) {
  if (!name.starts_with(kPart)) return false;
  name.remove_prefix(kPart.size());
  for (const std::string_view base : {"gate_up_proj", "down_proj"}) {
    for (const std::string_view end : {"", "_bias", "_blocks", "_scales"}) {
      if (name.starts_with(base) && name.substr(base.size()) == end) return true;
    }
  }
  return false;
}

void add_joined_experts(const std::map<std::string, Tensor>& given, const std::string& prefix, const DecoderConfig& config,
                        TensorFiles& to) {
  Layer(given, prefix, config, to).add();
}

}  // namespace sdx::text
