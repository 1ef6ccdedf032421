// Weights as they lie in the file, and models that refer to them.

#include <cmath>
#include <system_error>

#include "base/error.h"
#include "onnx/writer.h"
#include "text/model/network/decoder_graph.h"

namespace sdx::text {
namespace {

class InPlace : public WeightStyle {
 public:
  explicit InPlace(std::shared_ptr<const TensorFiles> file) : file_(std::move(file)) {}

  ValueId product(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight, std::int64_t first,
                  std::int64_t rows, ValueId bias) override {
    return g.node("sdx.GgmlMatMul", name + "/MatMul", {x, bytes_of(g, weight, first, rows), bias}, attributes(weight));
  }
  ValueId grouped(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight, std::int64_t groups) override {
    AttributeList a = attributes(weight);
    a.emplace_back("groups", groups);
    return g.node("sdx.GgmlMatMul", name + "/MatMul", {x, bytes_of(g, weight, 0, weight.shape[0])}, a);
  }
  ValueId rows(GraphWriter& g, const std::string& name, const StoredTensor& weight, ValueId indices) override {
    return g.node("sdx.GgmlGather", name + "/Gather", {bytes_of(g, weight, 0, weight.shape[0]), indices}, attributes(weight));
  }

  ValueId experts(GraphWriter& g, const std::string& name, ValueId x, ValueId scores, const ExpertTensors& t,
                  const ExpertConfig& c) override {
    const auto bias = [&](const char* of, const Tensor& values) {
      return values.defined() ? g.constant(name + of, values) : kNoValue;
    };
    std::vector<ValueId> in{x,
                            scores,
                            bias(".gate_bias", t.gate_bias),
                            bias(".up_bias", t.up_bias),
                            bias(".down_bias", t.down_bias),
                            bias(".choice_bias", t.choice_bias)};
    for (const auto* parts : {&t.gate, &t.up, &t.down}) {
      for (const StoredTensor& w : *parts) in.push_back(bytes_of(g, w, 0, w.shape[0]));
    }
    const auto type = [](const std::vector<StoredTensor>& parts) { return std::string(find_ggml(parts[0].type)->name); };
    AttributeList a{{"experts", c.count},        {"top_k", c.used},
                    {"K", t.gate[0].shape[1]},   {"F", t.down[0].shape[1]},
                    {"gate_type", type(t.gate)}, {"up_type", type(t.up)},
                    {"down_type", type(t.down)}, {"normalize_routing_weights", std::int64_t{c.normalize ? 1 : 0}}};
    if (c.scale != 1.0F) a.emplace_back("routing_scale", c.scale);
    if (c.alpha != 1.0F) a.emplace_back("activation_alpha", c.alpha);
    if (c.beta != 0.0F) a.emplace_back("activation_beta", c.beta);
    if (std::isfinite(c.limit)) a.emplace_back("swiglu_limit", c.limit);
    if (c.sigmoid) a.emplace_back("sigmoid", std::int64_t{1});
    if (c.groups > 1) a.insert(a.end(), {{"groups", c.groups}, {"groups_used", c.groups_used}});
    return g.node("sdx.GgmlExperts", name, in, a);
  }

 private:
  static AttributeList attributes(const StoredTensor& weight) {
    return {{"type", std::string(find_ggml(weight.type)->name)}, {"K", weight.shape[1]}};
  }
  ValueId bytes_of(GraphWriter& g, const StoredTensor& weight, std::int64_t first, std::int64_t rows) const {
    const std::string name = rows == weight.shape[0] ? weight.name : weight.name + "/" + std::to_string(first);
    if (const auto known = g.graph().find(name)) return *known;
    const std::int64_t row_bytes = find_ggml(weight.type)->row_bytes(weight.shape[1]);
    return g.constant(name, Tensor::view(weight.data.data() + first * row_bytes, DataType::uint8, {rows, row_bytes},
                                         file_->owner(weight.file)));
  }

  std::shared_ptr<const TensorFiles> file_;
};

}  // namespace

std::unique_ptr<WeightStyle> weights_in_place(std::shared_ptr<const TensorFiles> file) {
  return std::make_unique<InPlace>(std::move(file));
}

MappedModel map_model(const Model& model, const TensorFiles& file) {
  namespace fs = std::filesystem;
  std::vector<fs::path> resolved;
  for (const fs::path& path : file.paths()) {
    std::error_code error;
    resolved.push_back(fs::canonical(path, error));
    if (error) fail(ErrorCode::io, "cannot open '{}': {}", path.string(), error.message());
    if (resolved.back().parent_path() != resolved.front().parent_path()) {
      fail(ErrorCode::not_implemented, "the parts of a split model must be in one folder; '{}' is not beside '{}'",
           resolved.back().string(), resolved.front().string());
    }
  }
  const auto place = [&](const Tensor& t) -> std::optional<FilePlace> {
    const auto* at = static_cast<const std::byte*>(t.data());
    for (std::size_t i = 0; i < resolved.size(); ++i) {
      const auto bytes = file.bytes(i);
      if (at < bytes.data() || at >= bytes.data() + bytes.size()) continue;
      return FilePlace{resolved[i].filename().string(), static_cast<std::uint64_t>(at - bytes.data())};
    }
    return std::nullopt;
  };
  return {write_model(model, place), resolved.front().parent_path()};
}

}  // namespace sdx::text
