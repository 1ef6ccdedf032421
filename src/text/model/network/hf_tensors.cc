#include "text/model/network/hf_tensors.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/safe_name.h"
#include "tensor/safetensors.h"
#include "text/model/config_object.h"
#include "text/model/network/joined_experts.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1000;

// The two names of a layer's tensor: Hugging Face's, and GGUF's.
using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array kParts{NamePair{"input_layernorm", "attn_norm"},    NamePair{"self_attn.q_proj", "attn_q"},
                            NamePair{"self_attn.k_proj", "attn_k"},      NamePair{"self_attn.v_proj", "attn_v"},
                            NamePair{"self_attn.qkv_proj", "attn_qkv"},  NamePair{"self_attn.o_proj", "attn_output"},
                            NamePair{"self_attn.q_norm", "attn_q_norm"}, NamePair{"self_attn.k_norm", "attn_k_norm"},
                            NamePair{"mlp.gate_proj", "ffn_gate"},       NamePair{"mlp.up_proj", "ffn_up"},
                            NamePair{"mlp.gate_up_proj", "ffn_up"},      NamePair{"mlp.down_proj", "ffn_down"}};
// Of layers with experts; the first pair is that of Mixtral.
constexpr std::array kExpertParts{NamePair{"block_sparse_moe.gate", "ffn_gate_inp"},
                                  NamePair{"mlp.gate", "ffn_gate_inp"},
                                  NamePair{"mlp.router", "ffn_gate_inp"},
                                  NamePair{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                  NamePair{"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                  NamePair{"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                  NamePair{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}};
// Of one expert: after "mlp.experts.0." or "block_sparse_moe.experts.0.", and before ".0".
constexpr std::array kExpert{NamePair{"gate_proj", "ffn_gate"}, NamePair{"up_proj", "ffn_up"}, NamePair{"down_proj", "ffn_down"}};
constexpr std::array kMixtralExpert{NamePair{"w1", "ffn_gate"}, NamePair{"w3", "ffn_up"}, NamePair{"w2", "ffn_down"}};
constexpr std::string_view kSinks = "self_attn.sinks";  // has no ".weight"
constexpr std::array kNorms{NamePair{"post_attention_layernorm", "ffn_norm"}};
constexpr std::array kGemmaNorms{NamePair{"post_attention_layernorm", "post_attention_norm"},
                                 NamePair{"pre_feedforward_layernorm", "ffn_norm"},
                                 NamePair{"post_feedforward_layernorm", "post_ffw_norm"}};

class Names {
 public:
  explicit Names(const HfNetwork& network) : network_(network) {
    const bool phi = network.decoder.architecture == "phi3";
    for (const NamePair& p : kParts) {
      const bool joined = p.first == "self_attn.qkv_proj" || p.first == "mlp.gate_up_proj";
      const bool apart = p.first.starts_with("mlp.gate_p") || p.first.starts_with("mlp.up") || p.second == "attn_q" ||
                         p.second == "attn_k" || p.second == "attn_v";
      if (phi ? !apart : !joined) parts_.push_back(p);
    }
    const std::string& kind = network.decoder.architecture;
    for (const NamePair& p : kExpertParts) {
      const bool router = p.second == "ffn_gate_inp";
      const std::string_view of = kind == "mixtral" ? "block_sparse_moe.gate" : kind == "gpt-oss" ? "mlp.router" : "mlp.gate";
      if (network.decoder.experts.count > 0 && (!router || p.first == of)) parts_.push_back(p);
    }
    if (network.decoder.post_norms) {
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
    for (const std::string& prefix : {network_.prefix, std::string("model.language_model.")}) {
      if (!name.starts_with(prefix)) continue;
      std::string made = inside(std::string_view(name).substr(prefix.size()));
      if (!made.empty()) return made;
    }
    return name;
  }

  std::string hugging_face(const std::string& name) const {
    if (name == "output.weight") return network_.head;
    if (name == "token_embd.weight") return network_.prefix + "embed_tokens.weight";
    if (name == "output_norm.weight") return network_.prefix + "norm.weight";
    const std::size_t dot = name.find('.', 4), end = name.rfind('.');
    if (!name.starts_with("blk.") || dot == std::string::npos || end <= dot) return name;
    const std::string_view part = std::string_view(name).substr(dot + 1, end - dot - 1);
    if (part == "attn_sinks") return network_.prefix + "layers." + name.substr(4, dot - 4) + "." + std::string(kSinks);
    const auto p = std::find_if(parts_.begin(), parts_.end(), [&](const NamePair& n) { return n.second == part; });
    const std::size_t number = part.find('.');
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

 private:
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
    if (dot == std::string_view::npos || end <= dot) return "";
    const std::string_view part = name.substr(dot + 1, end - dot - 1);
    const auto p = std::find_if(parts_.begin(), parts_.end(), [&](const NamePair& n) { return n.first == part; });
    if (name.substr(dot + 1) == kSinks) return fmt::format("blk.{}.attn_sinks.weight", name.substr(0, dot));
    const std::string found = p != parts_.end() ? std::string(p->second) : of_expert(part);
    if (found.empty()) return "";
    return fmt::format("blk.{}.{}{}", name.substr(0, dot), found, name.substr(end));
  }

  const HfNetwork& network_;
  std::vector<NamePair> parts_;
};

std::optional<GgmlType> type_of(DataType t) {
  if (t == DataType::float32) return GgmlType::f32;
  if (t == DataType::float16) return GgmlType::f16;
  if (t == DataType::bfloat16) return GgmlType::bf16;
  return std::nullopt;
}

class Reader {
 public:
  Reader(const HfNetwork& network, TensorFiles& to) : names_(network), network_(network), to_(to) {}

  // `wanted`: names that the index assigns to this file; null: all.
  void add(const fs::path& path, const std::vector<std::string>* wanted) {
    const auto mapped = MappedFile::open(path);
    const std::size_t file = to_.paths().size();
    to_.add_file(path, mapped->bytes(), mapped);
    try {
      const SafeTensors all = parse_safetensors(mapped->bytes(), mapped);
      mapped->check_unchanged();
      if (wanted == nullptr) {
        for (const auto& [name, tensor] : all.tensors) take(name, tensor, file);
        return;
      }
      for (const std::string& name : *wanted) {
        const auto t = all.tensors.find(name);
        if (t == all.tensors.end())
          fail(ErrorCode::invalid_model, "the index says that tensor '{}' is here, but it is not", name);
        take(name, t->second, file);
      }
    } catch (Error& e) {
      if (e.code() != ErrorCode::invalid_argument) throw e.add_context("in '" + path.string() + "'");
      fail(ErrorCode::invalid_model, "'{}': {}", path.string(), e.message());
    }
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
      if (!t.name.ends_with(".bias") || t.name.ends_with("_exps.bias")) continue;
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
    StoredTensor t;
    t.name = names_.gguf(name);
    if (t.name.empty()) return;
    const auto type = type_of(tensor.dtype());
    if (!type) {
      fail(ErrorCode::not_implemented, "tensor '{}' is {}: weights must be F32, F16 or BF16", name, tensor.type_string());
    }
    t.type = static_cast<std::uint32_t>(*type);
    t.shape = tensor.shape();
    t.data = {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
    t.offset = static_cast<std::uint64_t>(t.data.data() - to_.bytes(file).data());
    t.file = file;
    if (!to_.add_tensor(std::move(t))) fail(ErrorCode::invalid_model, "tensor '{}' occurs twice", name);
  }

  Names names_;
  const HfNetwork& network_;
  TensorFiles& to_;
  std::map<std::string, std::map<std::string, Tensor>> joined_;  // by layer
};

std::map<std::string, std::vector<std::string>> read_index(const fs::path& path) {
  const nlohmann::json file = read_json_file(path);
  const auto wrong = [&](const std::string& why) { fail(ErrorCode::invalid_model, "'{}': {}", path.string(), why); };
  const auto map = file.is_object() ? file.find("weight_map") : file.end();
  if (map == file.end() || !map->is_object() || map->empty()) wrong("'weight_map' must be an object that names files");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, in] : map->items()) {
    if (!in.is_string()) wrong("'weight_map' gives no file for '" + name + "'");
    const std::string why = unsafe_name(in.get_ref<const std::string&>());
    if (!why.empty() || in.get_ref<const std::string&>().find('/') != std::string::npos) {
      wrong("the file of '" + name + "' must be beside the index" + (why.empty() ? "" : ": " + why));
    }
    files[in.get<std::string>()].push_back(name);
    if (files.size() > kMostFiles) wrong(fmt::format("at most {} files are read", kMostFiles));
  }
  return files;
}

}  // namespace

std::optional<fs::path> find_safetensors(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  }
  return std::nullopt;
}

std::shared_ptr<const TensorFiles> open_safetensors(const fs::path& listing, const HfNetwork& network) {
  auto files = std::make_shared<TensorFiles>();
  files->show_names_by([network](const std::string& name) { return Names(network).hugging_face(name); });
  Reader reader(network, *files);
  if (listing.extension() == ".json") {
    for (const auto& [name, tensors] : read_index(listing)) reader.add(listing.parent_path() / name, &tensors);
  } else {
    reader.add(listing, nullptr);
  }
  reader.add_joined();
  reader.check_biases();
  reader.tie();
  return files;
}

}  // namespace sdx::text
