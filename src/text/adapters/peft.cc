// Folders as PEFT writes them (huggingface/peft, save_pretrained).

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/element.h"
#include "tensor/json.h"
#include "tensor/safetensors.h"
#include "text/adapters/lora.h"

namespace sdx::text {
namespace {

using Json = nlohmann::json;

constexpr std::pair<std::string_view, std::string_view> kModules[] = {
    {"self_attn.q_proj", "attn_q"},     {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},     {"self_attn.o_proj", "attn_output"},
    {"self_attn.qkv_proj", "attn_qkv"}, {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},          {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up"},     {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"}};

// "model.layers.3.self_attn.q_proj" as GGUF files call its weight.
std::string weight_of(std::string_view module) {
  if (module == "lm_head") return "output.weight";
  constexpr std::string_view layers = "model.layers.";
  const std::size_t dot = module.starts_with(layers) ? module.find('.', layers.size()) : std::string_view::npos;
  if (dot != std::string_view::npos) {
    const std::string_view number = module.substr(layers.size(), dot - layers.size()), rest = module.substr(dot + 1);
    const bool digits = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
    for (const auto& [name, gguf] : kModules) {
      if (digits && rest == name) return "blk." + std::string(number) + "." + std::string(gguf) + ".weight";
    }
  }
  fail(ErrorCode::not_implemented, "an adapter of the module '{}' is not supported", module.substr(0, 200));
}

struct PeftConfig {
  double alpha = 8;
  bool rank_stabilised = false;
  std::vector<std::pair<std::string, double>> alphas;  // of modules that end so

  float scale(std::string_view module, std::int64_t rank) const {
    double a = alpha;
    for (const auto& [name, own] : alphas) {
      const bool ends = module.ends_with(name);
      if (ends && (module.size() == name.size() || module[module.size() - name.size() - 1] == '.')) a = own;
    }
    const auto r = static_cast<double>(rank);
    return static_cast<float>(a / (rank_stabilised ? std::sqrt(r) : r));
  }
};

// Refuses settings that would change the computation.
void refuse_others(const Json& json) {
  const auto refuse = [](const char* key, const std::string& value) {
    fail(ErrorCode::not_implemented, "adapter_config.json: {} {} is not supported", key, value.substr(0, 100));
  };
  if (json.value("peft_type", "") != "LORA")
    refuse("peft_type", json.contains("peft_type") ? json["peft_type"].dump() : "(none)");
  for (const char* key : {"use_dora", "fan_in_fan_out", "lora_bias", "use_qalora", "alora_invocation_tokens", "modules_to_save",
                          "trainable_token_indices", "target_parameters", "layer_replication", "exclude_modules_from_scaling"}) {
    if (!json.contains(key)) continue;
    const Json& v = json[key];
    const bool nothing = v.is_null() || v == false || ((v.is_array() || v.is_object()) && v.empty());
    if (!nothing) refuse(key, v.dump());
  }
  if (json.contains("bias") && json["bias"] != "none") refuse("bias", json["bias"].dump());
}

PeftConfig read_config(const std::filesystem::path& file) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
  const std::string text(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  const Json json = parse_json(text, file.string());
  if (!json.is_object()) fail(ErrorCode::invalid_model, "adapter_config.json must be an object");
  try {
    refuse_others(json);
    PeftConfig c;
    c.alpha = json.value("lora_alpha", 8.0);
    c.rank_stabilised = json.value("use_rslora", false);
    if (json.contains("alpha_pattern") && json["alpha_pattern"].is_object()) {
      for (const auto& [name, alpha] : json["alpha_pattern"].items()) {
        if (name.find_first_of("*+?[](){}|^$\\") != std::string::npos) {
          fail(ErrorCode::not_implemented,
               "adapter_config.json: alpha_pattern has an expression, '{}'; names of modules are supported", name.substr(0, 100));
        }
        c.alphas.emplace_back(name, alpha.get<double>());
      }
    }
    return c;
  } catch (const Json::exception& e) {
    fail(ErrorCode::invalid_model, "adapter_config.json has a value of an unexpected type: {}", e.what());
  }
}

// [rows, columns] as floats.
std::vector<float> matrix(const Tensor& t, const std::string& name) {
  const bool floats = t.dtype() == DataType::float32 || t.dtype() == DataType::float16 || t.dtype() == DataType::bfloat16;
  if (t.rank() != 2 || t.size() == 0 || !floats) {
    fail(ErrorCode::invalid_model, "'{}' must be a matrix of float32, float16 or bfloat16", name);
  }
  return to_floats(t);
}

// The position of row `r` of a matrix in GGUF files, where the halves of a head of queries and keys may be interleaved.
std::int64_t row_of(std::int64_t r, std::int64_t size, bool permuted) {
  if (!permuted) return r;
  const std::int64_t head = r / size, half = size / 2, at = r % size;
  return head * size + at % half * 2 + at / half;
}

LoraPair pair_of(const Tensor& a, const Tensor& b, const std::string& module, float scale, std::int64_t head_size,
                 bool permuted) {
  const std::vector<float> down = matrix(a, module + ".lora_A"), up = matrix(b, module + ".lora_B");
  const std::int64_t rank = a.dim(0), k = a.dim(1), n = b.dim(0);
  if (b.dim(1) != rank) {
    fail(ErrorCode::invalid_model, "the parts of '{}' do not fit: they must be [rank, k] and [n, rank]", module);
  }
  if (permuted && (head_size < 2 || n % head_size != 0)) {
    fail(ErrorCode::invalid_model, "'{}.lora_B' has {} rows, which are not whole heads of {}", module, n, head_size);
  }
  LoraPair out{Tensor(DataType::float32, {k, rank}), Tensor(DataType::float32, {rank, n})};
  const std::span<float> at = out.a.mutable_values<float>(), bt = out.b.mutable_values<float>();
  for (std::int64_t r = 0; r < rank; ++r) {
    for (std::int64_t c = 0; c < k; ++c) at[static_cast<std::size_t>(c * rank + r)] = down[static_cast<std::size_t>(r * k + c)];
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t to = row_of(i, head_size, permuted);
    for (std::int64_t r = 0; r < rank; ++r) {
      bt[static_cast<std::size_t>(r * n + to)] = up[static_cast<std::size_t>(i * rank + r)] * scale;
    }
  }
  return out;
}

}  // namespace

LoraWeights read_peft_folder(const std::filesystem::path& folder, float scale, const DecoderConfig& config) {
  const PeftConfig about = read_config(folder / "adapter_config.json");
  const SafeTensors file = read_safetensors(folder / "adapter_model.safetensors");
  LoraWeights out;
  constexpr std::string_view a_end = ".lora_A.weight", b_end = ".lora_B.weight", prefix = "base_model.model.";
  for (const auto& [name, a] : file.tensors) {
    if (name.ends_with(b_end)) {
      if (file.tensors.contains(name.substr(0, name.size() - b_end.size()) + std::string(a_end))) continue;
      fail(ErrorCode::invalid_model, "'{}' has no lora_A beside it", name);
    }
    if (!name.ends_with(a_end) || !name.starts_with(prefix)) {
      fail(ErrorCode::not_implemented, "tensor '{}' is not part of a LoRA adapter that is supported here", name.substr(0, 200));
    }
    const std::string module = name.substr(prefix.size(), name.size() - prefix.size() - a_end.size());
    const auto b = file.tensors.find(std::string(prefix) + module + std::string(b_end));
    if (b == file.tensors.end()) fail(ErrorCode::invalid_model, "'{}' has no lora_B beside it", name);
    const std::string weight = weight_of(module);
    const bool turned = weight.ends_with("attn_q.weight") || weight.ends_with("attn_k.weight");
    if (a.rank() != 2) fail(ErrorCode::invalid_model, "'{}' must be a matrix", name);
    const float own = about.scale(module, std::max<std::int64_t>(1, a.dim(0)));
    if (turned && config.interleaved && config.architecture == "decoder")
      fail(ErrorCode::not_implemented, "an adapter of '{}': genai_config.json does not tell in which order its rows are", module);
    const bool permuted = turned && config.interleaved && permuted_in_gguf(config.architecture);
    out.pairs[weight] = pair_of(a, b->second, module, own * scale, config.head_size, permuted);
  }
  return out;
}

}  // namespace sdx::text
