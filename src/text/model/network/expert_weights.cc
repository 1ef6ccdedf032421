#include "text/model/network/expert_weights.h"

#include "base/error.h"

namespace sdx::text {
namespace {

std::vector<StoredTensor> rows_apart(const StoredTensor& all, std::int64_t count) {
  std::vector<StoredTensor> parts(static_cast<std::size_t>(count), all);
  const std::size_t bytes = all.data.size() / parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].name += "." + std::to_string(i);
    parts[i].shape[0] /= count;
    parts[i].data = all.data.subspan(i * bytes, bytes);
    parts[i].offset += i * bytes;
  }
  return parts;
}

// `part`: "ffn_gate". One tensor for all experts, or one for each, as older files and folders have them.
std::vector<StoredTensor> expert_parts(WeightedGraph& w, const std::string& of, const std::string& part, std::int64_t count,
                                       std::int64_t rows, std::int64_t k) {
  if (!w.has(of + part + ".0.weight")) {
    StoredTensor all = w.tensor(of + part + "_exps.weight", {count, rows, k});
    all.shape = {count * rows, k};
    if (!w.has(of + "ffn_gate.0.weight")) return {all};
    return rows_apart(all, count);  // Granite's folders: of the three, only this one is whole
  }
  std::vector<StoredTensor> parts;
  for (std::int64_t e = 0; e < count; ++e) {
    parts.push_back(w.tensor(of + part + "." + std::to_string(e) + ".weight", {rows, k}));
    if (parts.back().type != parts.front().type) {
      fail(ErrorCode::not_implemented, "tensor '{}' is of another type than those of the other experts",
           w.files().shown(parts.back().name));
    }
  }
  return parts;
}
Tensor expert_bias(WeightedGraph& w, const std::string& name, std::int64_t count, std::int64_t rows) {
  if (!w.has(name)) return {};
  const StoredTensor& t = w.tensor(name, {count, rows});
  const GgmlFormat& format = *find_ggml(t.type);
  Tensor values(DataType::float32, t.shape);
  ggml_dequantize(format, t.data.data(), t.elements() / format.block, values.mutable_values<float>().data());
  return values;
}

}  // namespace

ExpertTensors expert_tensors(WeightedGraph& w, const std::string& of, const ExpertConfig& config, std::int64_t width) {
  const std::int64_t count = config.count, f = config.feed_forward;
  ExpertTensors t;
  t.gate = expert_parts(w, of, "ffn_gate", count, f, width);
  t.up = expert_parts(w, of, "ffn_up", count, f, width);
  t.down = expert_parts(w, of, "ffn_down", count, width, f);
  t.gate_bias = expert_bias(w, of + "ffn_gate_exps.bias", count, f);
  t.up_bias = expert_bias(w, of + "ffn_up_exps.bias", count, f);
  t.down_bias = expert_bias(w, of + "ffn_down_exps.bias", count, width);
  if (w.has(of + "exp_probs_b.bias")) t.choice_bias = w.values(of + "exp_probs_b.bias", {count});
  if (t.gate_bias.defined() != t.up_bias.defined())
    fail(ErrorCode::invalid_model, "'{}' has a bias for gates or for what they multiply, not for both", of + "ffn_gate_exps");
  return t;
}

}  // namespace sdx::text
