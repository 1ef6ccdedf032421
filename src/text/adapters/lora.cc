#include "text/adapters/lora.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/gguf/gguf_model.h"

namespace sdx::text {
namespace {

// [rows, columns] as floats, transposed and times `scale`.
Tensor transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns, float scale) {
  Tensor out(DataType::float32, {columns, rows});
  const std::span<float> to = out.mutable_values<float>();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to[static_cast<std::size_t>(c * rows + r)] = values[static_cast<std::size_t>(r * columns + c)] * scale;
    }
  }
  return out;
}

std::vector<float> floats_of(const GgufTensor& t) {
  const GgmlFormat* format = find_ggml(t.type);
  if (format == nullptr) fail(ErrorCode::not_implemented, "tensor '{}' is of a type that is not supported", t.name);
  std::vector<float> out(static_cast<std::size_t>(t.elements()));
  ggml_dequantize(*format, t.data.data(), t.elements() / format->block, out.data());
  return out;
}

// Files of llama have halves of a head as neighbours; networks from other files have them one behind the other.
void part_halves(Tensor& b, std::int64_t head_size, const std::string& weight) {
  const std::int64_t rank = b.dim(0), n = b.dim(1), half = head_size / 2;
  if (head_size < 2 || n % head_size != 0) {
    fail(ErrorCode::invalid_model, "'{}.lora_b' has {} rows, which are not whole heads of {}", weight, n, head_size);
  }
  Tensor out(DataType::float32, b.shape());
  for (std::int64_t r = 0; r < rank; ++r) {
    const float* from = b.values<float>().data() + r * n;
    float* to = out.mutable_values<float>().data() + r * n;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t head = i / head_size * head_size, at = i % head_size;
      to[i] = from[head + at % half * 2 + at / half];
    }
  }
  b = std::move(out);
}

}  // namespace

LoraWeights read_gguf_adapter(const std::filesystem::path& path, float scale, const DecoderConfig& config) {
  const std::shared_ptr<const GgufModel> file = GgufModel::open(path);
  const GgufFile& about = file->metadata();
  if (about.text("general.type").value_or("") != "adapter" || about.text("adapter.type").value_or("") != "lora") {
    fail(ErrorCode::invalid_model, "the file is not a LoRA adapter: general.type and adapter.type must be 'adapter' and 'lora'");
  }
  const std::string architecture(about.text("general.architecture").value_or(""));
  if (architecture != config.architecture) {
    fail(ErrorCode::invalid_model, "the adapter is for architecture '{}', the model is '{}'", architecture, config.architecture);
  }
  const auto alpha = static_cast<float>(about.number("adapter.lora.alpha").value_or(0.0));
  LoraWeights out;
  constexpr std::string_view a_end = ".lora_a", b_end = ".lora_b";
  for (const GgufTensor& a : file->tensors()) {
    if (a.name.ends_with(b_end)) {
      if (file->find_tensor(a.name.substr(0, a.name.size() - b_end.size()) + ".lora_a") != nullptr) continue;
      fail(ErrorCode::invalid_model, "'{}' has no .lora_a beside it", a.name);
    }
    if (!a.name.ends_with(a_end)) fail(ErrorCode::not_implemented, "tensor '{}' is not part of a LoRA adapter", a.name);
    const std::string weight = a.name.substr(0, a.name.size() - a_end.size());
    const GgufTensor* b = file->find_tensor(weight + ".lora_b");
    if (b == nullptr) fail(ErrorCode::invalid_model, "'{}' has no .lora_b beside it", a.name);
    if (a.shape.size() != 2 || b->shape.size() != 2 || a.shape[0] < 1 || a.shape[0] != b->shape[1]) {
      fail(ErrorCode::invalid_model, "the parts of '{}' do not fit: they must be [rank, k] and [n, rank]", weight);
    }
    if (weight == "token_embd.weight") fail(ErrorCode::not_implemented, "an adapter of the embedding is not supported");
    const float own = alpha != 0.0F ? alpha / static_cast<float>(a.shape[0]) : 1.0F;
    out.pairs[weight] = {transposed(floats_of(a), a.shape[0], a.shape[1], 1.0F),
                         transposed(floats_of(*b), b->shape[0], b->shape[1], own * scale)};
    const bool turned = weight.ends_with("attn_q.weight") || weight.ends_with("attn_k.weight");
    if (turned && permuted_in_gguf(architecture) && !config.interleaved)
      part_halves(out.pairs[weight].b, config.head_size, weight);
  }
  return out;
}

std::vector<LoraWeights> read_adapters(const std::vector<LoraAdapter>& adapters, const DecoderConfig& config) {
  std::vector<LoraWeights> out;
  for (const LoraAdapter& adapter : adapters) {
    if (!std::isfinite(adapter.scale)) fail(ErrorCode::invalid_argument, "the scale of an adapter must be a finite number");
    try {
      const bool folder = std::filesystem::is_directory(adapter.path);
      out.push_back(folder ? read_peft_folder(adapter.path, adapter.scale, config)
                           : read_gguf_adapter(adapter.path, adapter.scale, config));
      out.back().shown = adapter.path.string();
      if (out.back().pairs.empty()) fail(ErrorCode::invalid_model, "the adapter has no weights");
    } catch (Error& e) {
      throw e.add_context("in the adapter '" + adapter.path.string() + "'");
    }
  }
  return out;
}

ValueId AdaptedStyle::product(GraphWriter& g, const std::string& name, ValueId x, const GgufTensor& weight, std::int64_t first,
                              std::int64_t rows, ValueId bias) {
  ValueId y = base_->product(g, name, x, weight, first, rows, bias);
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    // A tied embedding is the output matrix too; adapters name it as that.
    auto at = adapters_[i].pairs.find(weight.name);
    if (at == adapters_[i].pairs.end() && weight.name == "token_embd.weight") at = adapters_[i].pairs.find("output.weight");
    if (at == adapters_[i].pairs.end()) continue;
    const LoraPair& pair = at->second;
    const std::int64_t n = weight.shape[0], k = weight.shape[1], rank = pair.a.dim(1);
    if (pair.a.dim(0) != k || pair.b.dim(1) != n) {
      fail(ErrorCode::invalid_model, "the adapter '{}' does not fit: its parts of '{}' are for [{}, {}], the weight is [{}, {}]",
           adapters_[i].shown, at->first, pair.b.dim(1), pair.a.dim(0), n, k);
    }
    used_.insert(std::to_string(i) + at->first);
    Tensor b = pair.b;
    if (rows != n) {
      b = Tensor(DataType::float32, {rank, rows});
      for (std::int64_t r = 0; r < rank; ++r) {
        std::copy_n(pair.b.values<float>().data() + r * n + first, rows, b.mutable_values<float>().data() + r * rows);
      }
    }
    const std::string lora = name + "/lora." + std::to_string(i);
    const ValueId low = g.node("MatMul", lora + "/A", {x, g.constant(lora + "/A/weight", pair.a)});
    const ValueId added = g.node("MatMul", lora + "/B", {low, g.constant(lora + "/B/weight", std::move(b))});
    y = g.node("Add", lora + "/Add", {y, added});
  }
  return y;
}

void AdaptedStyle::check_used() const {
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    for (const auto& [weight, pair] : adapters_[i].pairs) {
      if (used_.contains(std::to_string(i) + weight)) continue;
      fail(ErrorCode::invalid_model, "the adapter '{}' is for another model: the network has no weight '{}'", adapters_[i].shown,
           weight);
    }
  }
}

}  // namespace sdx::text
