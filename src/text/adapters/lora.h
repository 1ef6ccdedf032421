#pragma once
// LoRA adapters: matrices that are added to a network's products.

#include <map>
#include <memory>
#include <sdx/text.hpp>
#include <set>
#include <string>
#include <vector>

#include "text/model/network/decoder_config.h"
#include "text/model/network/decoder_graph.h"

namespace sdx::text {

// The term that is added to the product with a weight [n, k]: x * a * b.
struct LoraPair {
  Tensor a;  // float32[k, rank]
  Tensor b;  // float32[rank, n], with all scales
};

// Indexed by the weight's name in GGUF files: "blk.0.attn_q.weight".
struct LoraWeights {
  std::string shown;  // the adapter, for messages
  std::map<std::string, LoraPair> pairs;
};

// Throws Error(io), Error(invalid_model), Error(not_implemented) for kinds of adapters that are not known here; the context names
// the adapter. `config`: of the model that they are for.
std::vector<LoraWeights> read_adapters(const std::vector<LoraAdapter>& adapters, const DecoderConfig& config);
LoraWeights read_peft_folder(const std::filesystem::path& folder, float scale, const DecoderConfig& config);
LoraWeights read_gguf_adapter(const std::filesystem::path& file, float scale, const DecoderConfig& config);

// Products of another style, and the terms that adapters add to them.
class AdaptedStyle final : public WeightStyle {
 public:
  AdaptedStyle(std::unique_ptr<WeightStyle> base, std::vector<LoraWeights> adapters)
      : base_(std::move(base)), adapters_(std::move(adapters)) {}

  ValueId product(GraphWriter& g, const std::string& name, ValueId x, const GgufTensor& weight, std::int64_t first,
                  std::int64_t rows, ValueId bias) override;
  ValueId grouped(GraphWriter& g, const std::string& name, ValueId x, const GgufTensor& weight, std::int64_t groups) override {
    return base_->grouped(g, name, x, weight, groups);
  }
  ValueId rows(GraphWriter& g, const std::string& name, const GgufTensor& weight, ValueId indices) override {
    return base_->rows(g, name, weight, indices);
  }
  ValueId experts(GraphWriter& g, const std::string& name, ValueId x, ValueId scores, const ExpertTensors& tensors,
                  const ExpertConfig& config) override {
    return base_->experts(g, name, x, scores, tensors, config);
  }
  // Once the network is built. Throws Error(invalid_model) for a weight that an adapter names and the network lacks.
  void check_used() const;

 private:
  std::unique_ptr<WeightStyle> base_;
  std::vector<LoraWeights> adapters_;
  std::set<std::string> used_;
};

inline std::unique_ptr<AdaptedStyle> with_adapters(std::unique_ptr<WeightStyle> base, std::vector<LoraWeights> adapters) {
  return std::make_unique<AdaptedStyle>(std::move(base), std::move(adapters));
}

}  // namespace sdx::text
