#include "text/tokenizer/load/load.h"

#include <charconv>
#include <fstream>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/gguf/gguf_names.h"
#include "text/tokenizer/load/components.h"
#include "text/tokenizer/load/pieces.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

// The largest file that is read whole: ten times the largest vocabulary that is known.
constexpr std::size_t kLargest = std::size_t{512} << 20;

std::string read(const fs::path& path) { return read_file(path, kLargest); }

// Enough to tell a file's format.
std::string read_beginning(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(64, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.empty()) fail(ErrorCode::io, "cannot read '{}', or it is empty", path.string());
  return bytes;
}

// A JSON file that may be absent, or invalid; then it is empty.
class Companion {
 public:
  explicit Companion(const fs::path& path) {
    if (!fs::is_regular_file(path)) return;
    try {
      document_ = std::make_unique<JsonDocument>(read(path));
      if (!document_->root().is(JsonKind::object))
        fail(ErrorCode::invalid_model, "expected an object, not {}", name(document_->root().kind()));
      part_.emplace(document_->root(), path.filename().string());
    } catch (Error& e) {
      throw e.add_context("in " + path.string());
    }
  }
  explicit operator bool() const { return part_.has_value(); }
  const Part* operator->() const { return &*part_; }

  std::optional<bool> truth(std::string_view key) const {
    const auto value = part_ ? part_->get(key) : std::nullopt;
    return value ? std::optional(value->truth()) : std::nullopt;
  }
  // A token by its text, or by an object with its content.
  std::optional<std::string> token(std::string_view key) const {
    const auto value = part_ ? part_->get(key) : std::nullopt;
    if (!value) return std::nullopt;
    return std::string(value->json().is(JsonKind::object) ? value->at("content").text() : value->text());
  }

 private:
  std::unique_ptr<JsonDocument> document_;
  std::optional<Part> part_;
};

// The files beside a vocabulary.
struct Companions {
  explicit Companions(const fs::path& folder)
      : config(folder / "tokenizer_config.json"),
        special(folder / "special_tokens_map.json"),
        added(folder / "added_tokens.json") {}
  std::optional<std::string> token(std::string_view key) const {
    const auto own = config.token(key);
    return own ? own : special.token(key);
  }
  Companion config, special, added;
};

void set_special(const Companions& files, SpecialTokens& special) {
  const auto set = [&](std::optional<std::string>& to, const char* key) {
    if (auto token = files.token(key)) to = std::move(token);
  };
  set(special.bos, "bos_token");
  set(special.eos, "eos_token");
  set(special.unk, "unk_token");
  set(special.sep, "sep_token");
  set(special.pad, "pad_token");
  set(special.cls, "cls_token");
  set(special.mask, "mask_token");
}

// Tokens that the vocabulary's own file does not tell of: with their numbers in tokenizer_config.json, else in added_tokens.json.
void add_tokens(const Companions& files, TokenizerPipeline& pipeline) {
  const auto listed = files.config ? files.config->get("added_tokens_decoder") : std::nullopt;
  const auto put = [&](std::uint64_t id, AddedToken token) {
    if (id > 0xFFFFFFFFU) fail(ErrorCode::invalid_model, "the number {} of the added token '{}' is too large", id, token.content);
    if (!token.content.empty()) pipeline.added.put(static_cast<std::uint32_t>(id), std::move(token));
  };
  if (listed) {
    listed->expect(JsonKind::object);
    for (auto i = listed->json().begin(); !(i == listed->json().end()); ++i) {
      const Part part(*i, listed->where() + "." + std::string(i.key()));
      std::uint64_t id = 0;
      const auto end = i.key().data() + i.key().size();
      if (std::from_chars(i.key().data(), end, id).ptr != end) part.wrong("expected a token's number as the name");
      put(id, parse_added_token(part));
    }
  } else if (files.added) {
    const Part& all = *files.added.operator->();
    for (auto i = all.json().begin(); !(i == all.json().end()); ++i) {
      AddedToken token;
      token.content = std::string(i.key());
      token.normalized = false;
      const std::uint64_t id = Part(*i, "added_tokens.json." + token.content).whole();
      put(id, std::move(token));
    }
  }
  for (const auto& name : {pipeline.special.bos, pipeline.special.eos, pipeline.special.unk, pipeline.special.sep,
                           pipeline.special.pad, pipeline.special.cls, pipeline.special.mask}) {
    if (!name || name->empty()) continue;
    auto id = pipeline.model->vocabulary().id(*name);
    if (!id) id = pipeline.added.id(*name);
    if (!id || (pipeline.added.all().contains(*id) && pipeline.added.all().at(*id).special)) continue;
    AddedToken token;
    token.content = *name;
    token.special = true;
    token.normalized = false;
    pipeline.added.put(*id, std::move(token));
  }
  pipeline.added.build(pipeline.normalizer);
  pipeline.finish();
}

std::optional<std::uint32_t> id_of(const TokenizerPipeline& pipeline, const std::optional<std::string>& token) {
  if (!token) return std::nullopt;
  const auto own = pipeline.model->vocabulary().id(*token);
  return own ? own : pipeline.added.id(*token);
}

// add_bos_token, add_eos_token: as classes of transformers heed them.
void set_begin_and_end(const Companions& files, TokenizerPipeline& pipeline, bool bos, bool eos) {
  bos = files.config.truth("add_bos_token").value_or(bos);
  eos = files.config.truth("add_eos_token").value_or(eos);
  add_begin_and_end(pipeline, bos ? id_of(pipeline, pipeline.special.bos) : std::nullopt,
                    eos ? id_of(pipeline, pipeline.special.eos) : std::nullopt);
}

std::shared_ptr<TokenizerPipeline> load_sentencepiece(const fs::path& file, const Companions* files) {
  SentencePieceSettings settings;
  settings.finds_control = files != nullptr && static_cast<bool>(files->config);
  auto pipeline = pipeline_of_sentencepiece(read(file), settings);
  if (files == nullptr) return pipeline;
  set_special(*files, pipeline->special);
  add_tokens(*files, *pipeline);
  // T5 and its kin end each text, Llama and its kin begin it.
  const std::string kind = files->config ? files->config->text("tokenizer_class", "") : "";
  const bool ends = kind.starts_with("T5") || kind.starts_with("MT5");
  set_begin_and_end(*files, *pipeline, kind.starts_with("Llama") || kind.starts_with("Gemma"), ends);
  return pipeline;
}

std::shared_ptr<TokenizerPipeline> load_vocab_txt(const fs::path& file, const Companions& files) {
  WordPieceSettings settings;
  settings.lowercase = files.config.truth("do_lower_case").value_or(true);
  settings.chinese_chars = files.config.truth("tokenize_chinese_chars").value_or(true);
  settings.accents = files.config.truth("strip_accents");
  settings.unk = files.token("unk_token").value_or(settings.unk);
  settings.cls = files.token("cls_token").value_or(settings.cls);
  settings.sep = files.token("sep_token").value_or(settings.sep);
  auto pipeline = pipeline_of_vocab_txt(read(file), settings);
  set_special(files, pipeline->special);
  add_tokens(files, *pipeline);
  return pipeline;
}

std::shared_ptr<TokenizerPipeline> load_vocab_and_merges(const fs::path& folder, const Companions& files) {
  ByteLevelSettings settings;
  settings.add_prefix_space = files.config.truth("add_prefix_space").value_or(false);
  settings.unk = files.token("unk_token");
  auto pipeline = pipeline_of_vocab_and_merges(read(folder / "vocab.json"), read(folder / "merges.txt"), settings);
  set_special(files, pipeline->special);
  add_tokens(files, *pipeline);
  const auto cls = id_of(*pipeline, pipeline->special.cls), sep = id_of(*pipeline, pipeline->special.sep);
  const std::string kind = files.config ? files.config->text("tokenizer_class", "") : "";
  if (kind.starts_with("Roberta") && cls && sep) {
    PostProcessorStep step;
    step.kind = PostProcessorStep::Kind::roberta;
    step.cls = {*pipeline->special.cls, *cls};
    step.sep = {*pipeline->special.sep, *sep};
    step.add_prefix_space = settings.add_prefix_space;
    pipeline->post_processor = {step};
    pipeline->has_post_processor = true;
  } else {
    set_begin_and_end(files, *pipeline, false, false);
  }
  return pipeline;
}

std::shared_ptr<TokenizerPipeline> load_folder(const fs::path& folder) {
  const Companions files(folder);
  const auto there = [&](const char* name) { return fs::is_regular_file(folder / name); };
  if (there("tokenizer.json")) {
    auto pipeline = pipeline_of_json(read(folder / "tokenizer.json"));
    set_special(files, pipeline->special);
    return pipeline;
  }
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"}) {
    if (there(name)) return load_sentencepiece(folder / name, &files);
  }
  if (there("vocab.txt")) return load_vocab_txt(folder / "vocab.txt", files);
  if (there("vocab.json") && there("merges.txt")) return load_vocab_and_merges(folder, files);
  if (const auto gguf = gguf_in(folder)) return pipeline_of_gguf(GgufFile::open(*gguf));
  fail(ErrorCode::io,
       "the folder '{}' has no tokenizer: expected tokenizer.json, tokenizer.model, spiece.model, vocab.txt, vocab.json with "
       "merges.txt, or a .gguf file",
       folder.string());
}

std::shared_ptr<TokenizerPipeline> load_by_content(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string begin = read_beginning(path);
  if (begin.starts_with("GGUF")) return pipeline_of_gguf(GgufFile::open(path));
  if (path.extension() == ".json") return pipeline_of_json(read(path));
  if (path.extension() == ".model") return load_sentencepiece(path, nullptr);
  if (path.extension() == ".txt") return load_vocab_txt(path, Companions(path.parent_path()));
  const std::size_t text = begin.find_first_not_of(" \t\r\n");
  if (text != std::string::npos && begin[text] == '{') return pipeline_of_json(read(path));
  if (begin.starts_with('\n')) return load_sentencepiece(path, nullptr);  // the tag of the first piece
  fail(ErrorCode::invalid_model,
       "'{}' is not a tokenizer: expected a tokenizer.json, a SentencePiece model (.model), a vocab.txt, or a GGUF file", name);
}

}  // namespace

std::shared_ptr<const TokenizerPipeline> load_pipeline(const fs::path& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) {
    try {
      return load_folder(path);
    } catch (Error& e) {
      throw e.add_context("in the folder " + path.string());
    }
  }
  try {
    return load_by_content(path);
  } catch (Error& e) {
    throw e.add_context("in " + path.string());
  }
}

}  // namespace sdx::text
