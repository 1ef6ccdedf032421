#include "text/model/network/hf_tensors.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"
#include "base/words.h"
#include "tensor/safetensors.h"
#include "text/model/config_object.h"
#include "text/model/network/joined_experts.h"
#include "text/model/network/latent_weights.h"
#include "text/model/network/safetensors_files.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

// The two names of a layer's tensor: Hugging Face's, and GGUF's.
using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array kParts{
    NamePair{"input_layernorm", "attn_norm"}, NamePair{"self_attn.q_proj", "attn_q"}, NamePair{"self_attn.k_proj", "attn_k"},
    NamePair{"self_attn.v_proj", "attn_v"}, NamePair{"self_attn.qkv_proj", "attn_qkv"},
    NamePair{"self_attn.o_proj", "attn_output"}, NamePair{"self_attn.q_norm", "attn_q_norm"},
    NamePair{"self_attn.k_norm", "attn_k_norm"}, NamePair{"mlp.gate_proj", "ffn_gate"}, NamePair{"mlp.up_proj", "ffn_up"},
    NamePair{"mlp.gate_up_proj", "ffn_up"}, NamePair{"mlp.down_proj", "ffn_down"}, NamePair{"mlp.c_fc", "ffn_up"},
    NamePair{"mlp.c_proj", "ffn_down"}, NamePair{"self_attn.query_layernorm", "attn_q_norm"},
    NamePair{"self_attn.key_layernorm", "attn_k_norm"},
    // DeepSeek's.
    NamePair{"self_attn.q_a_proj", "attn_q_a"}, NamePair{"self_attn.q_a_layernorm", "attn_q_a_norm"},
    NamePair{"self_attn.q_b_proj", "attn_q_b"}, NamePair{"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    NamePair{"self_attn.kv_a_layernorm", "attn_kv_a_norm"}, NamePair{"self_attn.kv_b_proj", "attn_kv_b"}};
// Gated delta nets'.
constexpr std::array kDeltaParts{NamePair{"linear_attn.in_proj_qkv", "attn_qkv"}, NamePair{"linear_attn.in_proj_z", "attn_gate"},
                                 NamePair{"linear_attn.in_proj_qkvz", "ssm_in"},  NamePair{"linear_attn.in_proj_ba", "ssm_ba"},
                                 NamePair{"linear_attn.in_proj_b", "ssm_beta"},   NamePair{"linear_attn.in_proj_a", "ssm_alpha"},
                                 NamePair{"linear_attn.conv1d", "ssm_conv1d"},    NamePair{"linear_attn.norm", "ssm_norm"},
                                 NamePair{"linear_attn.out_proj", "ssm_out"}};
// Of selective scans beside attention, and in layers of their own.
constexpr std::array kMambaParts{NamePair{"mamba.in_proj", "ssm_in"}, NamePair{"mamba.conv1d", "ssm_conv1d"},
                                 NamePair{"mamba.norm", "ssm_norm"}, NamePair{"mamba.out_proj", "ssm_out"}};
constexpr std::array kFalconParts{NamePair{"pre_ff_layernorm", "ffn_norm"}, NamePair{"feed_forward.gate_proj", "ffn_gate"},
                                  NamePair{"feed_forward.up_proj", "ffn_up"}, NamePair{"feed_forward.down_proj", "ffn_down"}};
constexpr std::array kMixerParts{
    NamePair{"norm", "attn_norm"},       NamePair{"mixer.in_proj", "ssm_in"},    NamePair{"mixer.conv1d", "ssm_conv1d"},
    NamePair{"mixer.norm", "ssm_norm"},  NamePair{"mixer.out_proj", "ssm_out"},  NamePair{"mixer.q_proj", "attn_q"},
    NamePair{"mixer.k_proj", "attn_k"},  NamePair{"mixer.v_proj", "attn_v"},     NamePair{"mixer.o_proj", "attn_output"},
    NamePair{"mixer.up_proj", "ffn_up"}, NamePair{"mixer.down_proj", "ffn_down"}};
constexpr std::array kLfmParts{NamePair{"operator_norm", "attn_norm"},           NamePair{"ffn_norm", "ffn_norm"},
                               NamePair{"feed_forward.w1", "ffn_gate"},          NamePair{"feed_forward.w3", "ffn_up"},
                               NamePair{"feed_forward.w2", "ffn_down"},          NamePair{"self_attn.out_proj", "attn_output"},
                               NamePair{"self_attn.q_layernorm", "attn_q_norm"}, NamePair{"self_attn.k_layernorm", "attn_k_norm"},
                               NamePair{"conv.in_proj", "shortconv.in_proj"},    NamePair{"conv.conv", "shortconv.conv"},
                               NamePair{"conv.out_proj", "shortconv.out_proj"}};
// Granite's part that all tokens go through, where there are no experts.
constexpr std::array kPlainGraniteParts{NamePair{"shared_mlp.output_linear", "ffn_down"}};
// Of layers with experts; the first pair is that of Mixtral.
constexpr std::array kExpertParts{NamePair{"block_sparse_moe.gate", "ffn_gate_inp"},
                                  NamePair{"mlp.gate", "ffn_gate_inp"},
                                  NamePair{"mlp.router", "ffn_gate_inp"},
                                  NamePair{"block_sparse_moe.router.layer", "ffn_gate_inp"},
                                  NamePair{"block_sparse_moe.output_linear", "ffn_down_exps"},
                                  NamePair{"shared_mlp.output_linear", "ffn_down_shexp"},
                                  NamePair{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                  NamePair{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                  NamePair{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                  NamePair{"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                  NamePair{"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                  NamePair{"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                                  NamePair{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}};
// Of one expert: after "mlp.experts.0." or "block_sparse_moe.experts.0.", and before ".0".
constexpr std::array kExpert{NamePair{"gate_proj", "ffn_gate"}, NamePair{"up_proj", "ffn_up"}, NamePair{"down_proj", "ffn_down"}};
constexpr std::array kMixtralExpert{NamePair{"w1", "ffn_gate"}, NamePair{"w3", "ffn_up"}, NamePair{"w2", "ffn_down"}};
// Whole names, without ".weight" at the end of the first.
constexpr std::array kWhole{NamePair{"self_attn.sinks", "attn_sinks.weight"},
                            NamePair{"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                            NamePair{"linear_attn.A_log", "ssm_a"},
                            NamePair{"linear_attn.dt_bias", "ssm_dt.bias"},
                            NamePair{"mamba.A_log", "ssm_a"},
                            NamePair{"mamba.dt_bias", "ssm_dt.bias"},
                            NamePair{"mamba.D", "ssm_d"},
                            NamePair{"mixer.A_log", "ssm_a"},
                            NamePair{"mixer.dt_bias", "ssm_dt.bias"},
                            NamePair{"mixer.D", "ssm_d"},
                            NamePair{"mlp.experts.down_proj", "ffn_down_exps.weight"}};
constexpr std::array kNorms{NamePair{"post_attention_layernorm", "ffn_norm"}};
constexpr std::array kGlmNorms{NamePair{"post_self_attn_layernorm", "post_attention_norm"},
                               NamePair{"post_attention_layernorm", "ffn_norm"}, NamePair{"post_mlp_layernorm", "post_ffw_norm"}};
constexpr std::array kGemmaNorms{NamePair{"post_attention_layernorm", "post_attention_norm"},
                                 NamePair{"pre_feedforward_layernorm", "ffn_norm"},
                                 NamePair{"post_feedforward_layernorm", "post_ffw_norm"}};

// Names in kParts that an architecture does not have, because it has others for the same.
std::string_view names_of_others(std::string_view kind) {
  if (kind == "phi3") {
    return "self_attn.q_proj self_attn.k_proj self_attn.v_proj mlp.gate_proj mlp.up_proj mlp.c_fc mlp.c_proj "
           "self_attn.query_layernorm self_attn.key_layernorm";
  }
  if (kind == "glm4") {
    return "self_attn.qkv_proj mlp.gate_proj mlp.up_proj mlp.c_fc mlp.c_proj self_attn.query_layernorm "
           "self_attn.key_layernorm";
  }
  if (kind == "starcoder2") {
    return "self_attn.qkv_proj mlp.gate_up_proj mlp.gate_proj mlp.up_proj mlp.down_proj self_attn.query_layernorm "
           "self_attn.key_layernorm";
  }
  if (kind == "hunyuan-dense") {
    return "self_attn.qkv_proj mlp.gate_up_proj mlp.c_fc mlp.c_proj self_attn.q_norm self_attn.k_norm";
  }
  return "self_attn.qkv_proj mlp.gate_up_proj mlp.c_fc mlp.c_proj self_attn.query_layernorm self_attn.key_layernorm";
}

// The names of two tensors that are one in the file, one half of rows behind the other; of each expert, or once.
struct Halves {
  std::string first, second;
  bool experts;
};

class Names {
 public:
  explicit Names(const HfNetwork& network) : network_(network) {
    const std::string& kind = network.decoder.architecture;
    add_recurrent(kind);
    for (const NamePair& p : kParts) {
      if (!has_word(names_of_others(kind), p.first)) parts_.push_back(p);
    }
    for (const NamePair& p : kExpertParts) {
      const bool router = p.second == "ffn_gate_inp";
      const std::string_view of = kind == "mixtral"                            ? "block_sparse_moe.gate"
                                  : kind == "gpt-oss"                          ? "mlp.router"
                                  : has_word("granitemoe granitehybrid", kind) ? "block_sparse_moe.router.layer"
                                                                               : "mlp.gate";
      const bool granite = p.first.ends_with(".output_linear"), qwen = p.first.starts_with("mlp.shared");
      const bool several = p.first.starts_with("mlp.shared_experts.");
      const bool fits = router                                       ? p.first == of
                        : has_word("granitemoe granitehybrid", kind) ? granite
                        : has_word("glm4moe deepseek2", kind)        ? several
                                                                     : qwen && !several;
      if (network.decoder.experts.count > 0 && fits) parts_.push_back(p);
    }
    if (kind == "falcon-h1") {
      parts_.insert(parts_.end(), kFalconParts.begin(), kFalconParts.end());
    } else if (kind == "glm4") {
      parts_.insert(parts_.end(), kGlmNorms.begin(), kGlmNorms.end());
    } else if (network.decoder.post_norms) {
      parts_.insert(parts_.end(), kGemmaNorms.begin(), kGemmaNorms.end());
    } else {
      parts_.insert(parts_.end(), kNorms.begin(), kNorms.end());
    }
  }

  // Returns "" for tensors that are no part of the network, and unknown names as they are.
  std::string gguf(const std::string& name) const {
    for (const std::string& other : network_.others) {
      if (name.starts_with(other)) return "";
    }
    if (name.ends_with(".rotary_emb.inv_freq")) return "";  // of older files: computed here
    if (name == network_.head || name == "lm_head.weight") return "output.weight";
    if (name == network_.prefix + "norm.bias") return "output_norm.bias";
    for (const NamePair& n : top_names()) {
      if (name == network_.prefix + std::string(n.first)) return std::string(n.second);
    }
    for (const std::string& prefix : {network_.prefix, std::string("model.language_model.")}) {
      if (!name.starts_with(prefix)) continue;
      std::string made = inside(std::string_view(name).substr(prefix.size()));
      if (!made.empty()) return made;
    }
    return name;
  }

  std::string hugging_face(const std::string& name) const {
    if (name == "output.weight") return network_.head;
    for (const NamePair& n : top_names()) {
      if (name == n.second) return network_.prefix + std::string(n.first);
    }
    if (name == "token_embd.weight") return network_.prefix + "embed_tokens.weight";
    if (name == "output_norm.weight") return network_.prefix + "norm.weight";
    if (name == "output_norm.bias") return network_.prefix + "norm.bias";
    const std::size_t dot = name.find('.', 4), end = name.rfind('.');
    if (!name.starts_with("blk.") || dot == std::string::npos) return name;
    for (const NamePair& n : kWhole) {
      if (std::string_view(name).substr(dot + 1) == n.second && is_own(n.first))
        return fmt::format("{}layers.{}.{}", network_.prefix, name.substr(4, dot - 4), n.first);
    }
    if (end <= dot) return name;
    const std::string_view part = std::string_view(name).substr(dot + 1, end - dot - 1);
    const auto p = std::find_if(parts_.begin(), parts_.end(), [&](const NamePair& n) { return n.second == part; });
    const std::size_t number = part.find('.');
    const std::string_view whole = part.substr(0, number);
    if (has_word("granitemoe granitehybrid", network_.decoder.architecture) &&
        has_word("ffn_gate ffn_up ffn_gate_shexp ffn_up_shexp", whole)) {
      const std::string_view module = whole.ends_with("_shexp") ? "shared_mlp" : "block_sparse_moe";
      return fmt::format("{}layers.{}.{}.input_linear{}", network_.prefix, name.substr(4, dot - 4), module, name.substr(end));
    }
    if (p == parts_.end() && number != std::string_view::npos) {
      for (const NamePair& n : mixtral() ? kMixtralExpert : kExpert) {
        if (n.second != part.substr(0, number)) continue;
        return fmt::format("{}layers.{}.{}.experts{}.{}{}", network_.prefix, name.substr(4, dot - 4),
                           mixtral() ? "block_sparse_moe" : "mlp", part.substr(number), n.first, name.substr(end));
      }
    }
    if (p == parts_.end()) return name;
    return network_.prefix + "layers." + name.substr(4, dot - 4) + "." + std::string(p->first) + name.substr(end);
  }

  // The layer's number and the tensor's name in it where it is one of gpt-oss's experts, which are put into another order.
  std::optional<std::pair<std::string, std::string>> joined_expert(std::string_view name) const {
    if (network_.decoder.architecture != "gpt-oss" || !name.starts_with(network_.prefix)) return std::nullopt;
    name.remove_prefix(network_.prefix.size());
    if (!name.starts_with("layers.")) return std::nullopt;
    name.remove_prefix(7);
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos || !is_joined_expert(name.substr(dot + 1))) return std::nullopt;
    return std::pair(std::string(name.substr(0, dot)), std::string(name.substr(dot + 1)));
  }

  // Where experts, or the one that all tokens go through, have gates and what they multiply in one tensor.
  std::optional<Halves> halves(std::string_view name) const {
    if (!has_word("granitemoe granitehybrid qwen35moe", network_.decoder.architecture) || !name.starts_with(network_.prefix))
      return std::nullopt;
    name.remove_prefix(network_.prefix.size());
    const std::size_t dot = name.starts_with("layers.") ? name.find('.', 7) : std::string_view::npos;
    if (dot == std::string_view::npos) return std::nullopt;
    const std::string of = fmt::format("blk.{}.", name.substr(7, dot - 7));
    const std::string_view part = name.substr(dot + 1);
    if (part == "mlp.experts.gate_up_proj") return Halves{of + "ffn_gate", of + "ffn_up", true};
    if (part == "block_sparse_moe.input_linear.weight") return Halves{of + "ffn_gate", of + "ffn_up", true};
    const std::string shared = network_.decoder.experts.count > 0 ? "_shexp" : "";
    if (part == "shared_mlp.input_linear.weight") return Halves{of + "ffn_gate" + shared, of + "ffn_up" + shared, false};
    return std::nullopt;
  }

 private:
  // Whether a whole name is that of this network's tensor, where several have one name in GGUF files.
  bool is_own(std::string_view name) const {
    const std::string& kind = network_.decoder.architecture;
    if (name.starts_with("linear_attn.")) return network_.decoder.delta.heads > 0;
    if (name.starts_with("mixer.")) return has_word("mamba2 nemotron_h", kind);
    return name.starts_with("mamba.") ? has_word("granitehybrid falcon-h1", kind) : name != "mlp.experts.down_proj";
  }
  void add_recurrent(std::string_view kind) {
    const auto add = [&](const auto& parts) { parts_.insert(parts_.end(), parts.begin(), parts.end()); };
    if (network_.decoder.delta.heads > 0) add(kDeltaParts);
    if (has_word("granitehybrid falcon-h1", kind)) add(kMambaParts);
    if (kind == "granitehybrid" && network_.decoder.experts.count == 0) add(kPlainGraniteParts);
    if (has_word("mamba2 nemotron_h", kind)) add(kMixerParts);
    if (kind == "lfm2") add(kLfmParts);
  }
  // Those outside layers that are not as Llama's.
  std::vector<NamePair> top_names() const {
    const std::string& kind = network_.decoder.architecture;
    if (kind == "falcon-h1") return {{"final_layernorm.weight", "output_norm.weight"}};
    if (kind == "lfm2") return {{"embedding_norm.weight", "token_embd_norm.weight"}};
    if (has_word("mamba2 nemotron_h", kind))
      return {{"embeddings.weight", "token_embd.weight"}, {"norm_f.weight", "output_norm.weight"}};
    return {};
  }
  bool mixtral() const { return network_.decoder.architecture == "mixtral"; }

  // "ffn_gate.3" for "mlp.experts.3.gate_proj"; "": it is something else.
  std::string of_expert(std::string_view part) const {
    const std::string_view begin = mixtral() ? "block_sparse_moe.experts." : "mlp.experts.";
    if (network_.decoder.experts.count == 0 || !part.starts_with(begin)) return "";
    part.remove_prefix(begin.size());
    const std::size_t dot = part.find('.');
    if (dot == 0 || dot == std::string_view::npos || part.find_first_not_of("0123456789") != dot) return "";
    for (const NamePair& n : mixtral() ? kMixtralExpert : kExpert) {
      if (n.first == part.substr(dot + 1)) return fmt::format("{}.{}", n.second, part.substr(0, dot));
    }
    return "";
  }

  std::string inside(std::string_view name) const {
    if (name == "embed_tokens.weight") return "token_embd.weight";
    if (name == "norm.weight") return "output_norm.weight";
    if (!name.starts_with("layers.")) return "";
    name.remove_prefix(7);
    const std::size_t dot = name.find('.'), end = name.rfind('.');
    if (dot == std::string_view::npos) return "";
    for (const NamePair& n : kWhole) {
      if (name.substr(dot + 1) == n.first) return fmt::format("blk.{}.{}", name.substr(0, dot), n.second);
    }
    if (end <= dot) return "";
    const std::string_view part = name.substr(dot + 1, end - dot - 1);
    const auto p = std::find_if(parts_.begin(), parts_.end(), [&](const NamePair& n) { return n.first == part; });
    const std::string found = p != parts_.end() ? std::string(p->second) : of_expert(part);
    if (found.empty()) return "";
    return fmt::format("blk.{}.{}{}", name.substr(0, dot), found, name.substr(end));
  }

  const HfNetwork& network_;
  std::vector<NamePair> parts_;
};

class Reader {
 public:
  Reader(const HfNetwork& network, TensorFiles& to) : names_(network), network_(network), to_(to) {}

  void add(const fs::path& listing) {
    each_safetensor(listing, to_,
                    [&](const std::string& name, const Tensor& tensor, std::size_t file) { take(name, tensor, file); });
  }

  // Puts experts that are stored in another order into that of GGUF files.
  void add_joined() {
    for (const auto& [layer, tensors] : joined_) add_joined_experts(tensors, "blk." + layer + ".", network_.decoder, to_);
  }

  // Biases are as config.json says.
  void check_biases() const {
    for (std::int64_t i = 0; i < network_.decoder.layers; ++i) {
      const std::string at = fmt::format("{}layers.{}.", network_.prefix, i);
      for (const std::string& part : network_.biased) {
        const std::string name = at + part + ".bias";
        if (to_.find_tensor(names_.gguf(name)) == nullptr) {
          fail(ErrorCode::invalid_model, "the model lacks the tensor '{}', which config.json requires", name);
        }
      }
    }
    for (const StoredTensor& t : to_.tensors()) {
      // Those of norms are asked for, or unknown, as the architecture has it.
      if (!t.name.ends_with(".bias") || t.name.ends_with("_exps.bias") || t.name.ends_with("_norm.bias")) continue;
      if (t.name.ends_with(".exp_probs_b.bias") || t.name.ends_with(".ssm_dt.bias") || t.name.ends_with(".ssm_conv1d.bias"))
        continue;
      const std::string name = names_.hugging_face(t.name);
      const bool known = std::any_of(network_.biased.begin(), network_.biased.end(),
                                     [&](const std::string& part) { return name.ends_with("." + part + ".bias"); });
      if (!known) fail(ErrorCode::not_implemented, "there is a tensor '{}', which config.json does not mention", name);
    }
  }

  // The output matrix is the embedding, or the other way round, where config.json says so.
  void tie() const {
    const bool embedding = to_.find_tensor("token_embd.weight") != nullptr, head = to_.find_tensor("output.weight") != nullptr;
    if (!head && !network_.tied) {
      fail(ErrorCode::invalid_model, "the model lacks the tensor '{}', and config.json: tie_word_embeddings is false",
           network_.head);
    }
    if (embedding || !head || !network_.tied) return;
    StoredTensor t = *to_.find_tensor("output.weight");
    t.name = "token_embd.weight";
    to_.add_tensor(std::move(t));
  }

 private:
  void take(const std::string& name, const Tensor& tensor, std::size_t file) {
    if (const auto joined = names_.joined_expert(name)) {
      joined_[joined->first][joined->second] = tensor;
      return;
    }
    std::string own = names_.gguf(name);
    if (own.empty()) return;
    StoredTensor t = stored_tensor(name, tensor, to_, file);
    t.name = std::move(own);
    const auto halves = names_.halves(name);
    if (halves && t.shape.size() == (halves->experts ? 3U : 2U)) return add_halves(t, *halves, name);
    if (!to_.add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
  }

  void add_halves(const StoredTensor& all, const Halves& names, const std::string& name) {
    const std::int64_t experts = names.experts ? all.shape[0] : 1, both = *(all.shape.end() - 2), k = all.shape.back();
    if (experts < 1 || both < 2 || k < 1 || both % 2 != 0)
      fail(ErrorCode::invalid_model, "tensor '{}' is {}, which has no halves", name, to_string(all.shape));
    const std::size_t bytes = all.data.size() / static_cast<std::size_t>(2 * experts);
    for (std::int64_t i = 0; i < 2 * experts; ++i) {
      StoredTensor t = all;
      const std::string& half = i % 2 == 0 ? names.first : names.second;
      t.name = names.experts ? fmt::format("{}.{}.weight", half, i / 2) : half + ".weight";
      t.shape = {both / 2, k};
      t.data = all.data.subspan(static_cast<std::size_t>(i) * bytes, bytes);
      t.offset = all.offset + static_cast<std::uint64_t>(i) * bytes;
      if (!to_.add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
    }
  }

  Names names_;
  const HfNetwork& network_;
  TensorFiles& to_;
  std::map<std::string, std::map<std::string, Tensor>> joined_;  // by layer
};

}  // namespace

std::shared_ptr<const TensorFiles> open_safetensors(const fs::path& listing, const HfNetwork& network) {
  auto files = std::make_shared<TensorFiles>();
  files->show_names_by([network](const std::string& name) { return Names(network).hugging_face(name); });
  Reader reader(network, *files);
  reader.add(listing);
  reader.add_joined();
  add_latent_parts(network.decoder, *files);
  reader.check_biases();
  reader.tie();
  return files;
}

}  // namespace sdx::text
