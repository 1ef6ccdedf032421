#include "text/model/network/latent_weights.h"

#include <cstring>

#include <sdx/tensor.hpp>

#include "base/error.h"
#include "base/parallel.h"

namespace sdx::text {
namespace {

std::string of_layer(std::int64_t i, const char* part) { return fmt::format("blk.{}.{}.weight", i, part); }

bool lacks(const TensorFiles& files, std::int64_t layer) {
  return files.find_tensor(of_layer(layer, "attn_k_b")) == nullptr && files.find_tensor(of_layer(layer, "attn_kv_b")) != nullptr;
}

class Layer {
 public:
  Layer(const DecoderConfig& c, TensorFiles& files, std::int64_t i)
      : c_(c), files_(files), i_(i), from_(*files.find_tensor(of_layer(i, "attn_kv_b"))), format_(find_ggml(from_.type)) {
    const std::vector<std::int64_t> expected{c.heads * (c.latent.plain + c.latent.value), c.latent.size};
    if (from_.shape != expected) {
      fail(ErrorCode::invalid_model, "tensor '{}' is {}, expected {}", files.shown(from_.name), to_string(from_.shape),
           to_string(expected));
    }
    if (format_ == nullptr)
      fail(ErrorCode::not_implemented, "tensor '{}' is of a type that is not supported", files.shown(from_.name));
  }

  void add() {
    keys();
    values();
  }

 private:
  // Types without blocks are kept; others become float32, because blocks lie along the other axis.
  void keys() {
    const std::int64_t rows = c_.latent.plain, k = c_.latent.size, all = c_.latent.plain + c_.latent.value;
    const bool kept = format_->block == 1;
    const std::int64_t size = kept ? format_->bytes : static_cast<std::int64_t>(sizeof(float)), row_bytes = format_->row_bytes(k);
    StoredTensor t = room("attn_k_b", {c_.heads * k, rows}, c_.heads * k * rows * size);
    t.type = kept ? from_.type : static_cast<std::uint32_t>(GgmlType::f32);
    auto* to = const_cast<std::byte*>(t.data.data());
    in_parallel(c_.heads, 1, [&](std::int64_t first, std::int64_t last) {
      std::vector<float> row(kept ? 0 : static_cast<std::size_t>(k));
      for (std::int64_t r = first * rows; r < last * rows; ++r) {
        const std::int64_t head = r / rows, j = r % rows;
        const std::byte* source = from_.data.data() + (head * all + j) * row_bytes;
        if (!kept) {
          ggml_dequantize(*format_, source, k / format_->block, row.data());
          source = reinterpret_cast<const std::byte*>(row.data());
        }
        for (std::int64_t e = 0; e < k; ++e)
          std::memcpy(to + ((head * k + e) * rows + j) * size, source + e * size, static_cast<std::size_t>(size));
      }
    });
    give(std::move(t));
  }

  void values() {
    const std::int64_t rows = c_.latent.value, row_bytes = format_->row_bytes(c_.latent.size);
    StoredTensor t = room("attn_v_b", {c_.heads * rows, c_.latent.size}, c_.heads * rows * row_bytes);
    t.type = from_.type;
    auto* to = const_cast<std::byte*>(t.data.data());
    for (std::int64_t head = 0; head < c_.heads; ++head) {
      const std::int64_t first = head * (c_.latent.plain + rows) + c_.latent.plain;
      std::memcpy(to + head * rows * row_bytes, from_.data.data() + first * row_bytes,
                  static_cast<std::size_t>(rows * row_bytes));
    }
    give(std::move(t));
  }

  // A tensor in memory that the files keep.
  StoredTensor room(const char* part, std::vector<std::int64_t> shape, std::int64_t bytes) {
    auto owned = std::make_shared<Tensor>(DataType::uint8, Shape{bytes});
    const std::span<const std::byte> data{static_cast<const std::byte*>(owned->mutable_data()), static_cast<std::size_t>(bytes)};
    files_.add_file({}, data, owned);
    StoredTensor t;
    t.name = of_layer(i_, part);
    t.shape = std::move(shape);
    t.data = data;
    t.file = files_.paths().size() - 1;
    return t;
  }
  void give(StoredTensor t) {
    const std::string name = t.name;
    if (!files_.add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
  }

  const DecoderConfig& c_;
  TensorFiles& files_;
  std::int64_t i_;
  StoredTensor from_;
  const GgmlFormat* format_;
};

}  // namespace

bool lacks_latent_parts(const DecoderConfig& config, const TensorFiles& files) {
  for (std::int64_t i = 0; config.latent.size > 0 && i < config.layers; ++i) {
    if (lacks(files, i)) return true;
  }
  return false;
}

void add_latent_parts(const DecoderConfig& config, TensorFiles& files) {
  for (std::int64_t i = 0; config.latent.size > 0 && i < config.layers; ++i) {
    if (lacks(files, i)) Layer(config, files, i).add();
  }
}

}  // namespace sdx::text
