#include "cli/text/generation_flags.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <fstream>
#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/registry/pulled.h"

namespace sdx::cli {

void GenerationFlags::add_to(const Command& command) {
  command_ = command;
  command->add_option("MODEL", model, "A .gguf file, or a folder that contains a language model")->required();
  command->add_option("--max-tokens", max_tokens, "Maximum number of tokens per answer (256)")->type_name("N");
  command->add_flag("--greedy", greedy, "Always choose the likeliest token");
  command->add_option("--temperature", temperature, "Divisor of the logits; 0: same as --greedy")->type_name("X");
  command->add_option("--top-k", top_k, "Choose among the N likeliest tokens; 0: all")->type_name("N");
  command->add_option("--top-p", top_p, "Choose among the likeliest tokens whose total probability reaches X")->type_name("X");
  command->add_option("--min-p", min_p, "Choose among tokens with at least X times the probability of the likeliest")
      ->type_name("X");
  command->add_option("--typical-p", typical_p, "Choose among the most typical tokens whose total probability reaches X")
      ->type_name("X");
  command
      ->add_option("--repetition-penalty", repetition_penalty,
                   "Divisor of the logits of tokens that have already occurred; 1: none")
      ->type_name("X");
  command->add_option("--presence-penalty", presence_penalty, "Subtracted from the logits of tokens that occur in the answer")
      ->type_name("X");
  command->add_option("--frequency-penalty", frequency_penalty, "The same, for each occurrence")->type_name("X");
  command->add_option("--logit-bias", logit_bias, "Added to a token's logit; may be repeated")->type_name("ID=X")->one_word();
  command->add_option("--seed", seed, "Seed; the same seed gives the same answer")->type_name("N");
  command->add_option("--stop", stop, "Text that ends the answer; may be repeated")->type_name("TEXT")->one_word();
  command->add_option("--json-schema", json_schema, "Answer with JSON that matches this schema")->type_name("FILE");
  command->add_option("--grammar", grammar, "Answer with text that matches this grammar, in llama.cpp's notation (GBNF)")
      ->type_name("FILE");
  command->add_option("--regex", regex, "Answer with text that matches this regular expression as a whole")->type_name("REGEX");
  command
      ->add_option("--lookup", lookup, "Guess up to N tokens from earlier repetitions in the text: faster if it repeats itself")
      ->type_name("N")
      ->range(0, 64);
  command->add_option("--draft", draft, "Smaller model with the same vocabulary that guesses tokens")->type_name("MODEL");
  command->add_option("--draft-tokens", draft_tokens, "Tokens per guess of the --draft model (4)")->type_name("N")->range(1, 64);
  command->add_option("--beams", beams, "Beam search with N texts at a time")->type_name("N")->range(1, 64);
  command->add_option("--length-penalty", length_penalty, "Beam search: divide scores by length to the power X (1)")
      ->type_name("X");
  command->add_flag("--no-early-stopping", no_early_stopping, "Beam search: continue until no text can become better");
  command
      ->add_option("--context-overflow", overflow,
                   "When the context is full: error (end the answer) or slide (drop older tokens)")
      ->one_of({"error", "slide"});
  command->add_option("--keep", keep, "With slide: keep the first N tokens")->type_name("N");
  command->add_option("--lora", loras, "LoRA adapter and its scale (1); may be repeated")->type_name("PATH[=X]")->one_word();
  command->add_option("--context", context, "Maximum number of tokens of prompt and answer; 0: the model's context")
      ->type_name("N");
  command->add_option("-t,--threads", threads, "Threads; 0: one per core")->type_name("N");
  command
      ->add_option("--cache-type", cache_type, "Type in which keys and values are stored: float16, bfloat16 and int8 save memory")
      ->one_of({"float32", "float16", "bfloat16", "int8"});
  add_accuracy_level(command, accuracy_level);
}

void add_accuracy_level(const Command& command, int& level) {
  command
      ->add_option("--accuracy-level", level,
                   "Least precise type of activations beside weights in blocks: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0: as "
                   "the model's files ask, which is int8 in .gguf files")
      ->range(0, 4)
      ->type_name("N");
}

void GenerationFlags::check() const {
  if (int{typed("--json-schema")} + int{typed("--grammar")} + int{typed("--regex")} > 1) {
    throw UsageError("only one of --json-schema, --grammar and --regex can be kept to");
  }
  if (typed("--keep") && overflow != "slide") throw UsageError("--keep needs --context-overflow slide");
  if (typed("--draft-tokens") && draft.empty()) throw UsageError("--draft-tokens needs --draft");
  if (lookup > 0 && !draft.empty()) throw UsageError("only one of --lookup and --draft can guess");
  if (beams == 1 && (typed("--length-penalty") || no_early_stopping)) {
    throw UsageError("--length-penalty and --no-early-stopping need --beams");
  }
  biases();
  read_loras(loras);
}

std::unique_ptr<text::OpenModel> GenerationFlags::open() const {
  LanguageModelOptions options;
  options.session.threads = threads;
  options.max_context = context;
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
    if (name(type) == cache_type) options.cache_type = type;
  }
  options.accuracy_level = accuracy_level;
  options.loras = read_loras(loras);
  return load_module<text::Tools>().open(text_model(model), options);
}

std::vector<std::pair<TokenId, float>> GenerationFlags::biases() const {
  std::vector<std::pair<TokenId, float>> out;
  for (const std::string& text : logit_bias) {
    const char* const end = text.data() + text.size();
    TokenId id = 0;
    float bias = 0;
    const auto number = std::from_chars(text.data(), end, id);
    const bool equals = number.ec == std::errc{} && number.ptr != end && *number.ptr == '=';
    const auto value = equals ? std::from_chars(number.ptr + 1, end, bias) : number;
    if (!equals || value.ec != std::errc{} || value.ptr != end) {
      throw UsageError(fmt::format("--logit-bias {}: expected a token id and the value to add, such as 42=-1.5", text));
    }
    out.emplace_back(id, bias);
  }
  return out;
}

void GenerationFlags::set_search(GenerationSettings& s) const {
  s.lookup = static_cast<int>(lookup);
  s.draft_tokens = static_cast<int>(draft_tokens);
  s.beams = static_cast<int>(beams);
  s.length_penalty = static_cast<float>(length_penalty);
  s.early_stopping = !no_early_stopping;
  s.overflow = overflow == "slide" ? ContextOverflow::slide : ContextOverflow::error;
  s.keep = keep;
  if (draft.empty()) return;
  LanguageModelOptions options;
  options.session.threads = threads;
  s.draft = load_module<text::Tools>().open(text_model(draft), options)->model();
}

GenerationSettings GenerationFlags::settings(const text::OpenModel& opened) const {
  GenerationSettings s;
  s.max_tokens = max_tokens;
  s.stop = stop;
  s.sampling = opened.info().defaults;
  const auto set = [&](const char* flag, float& to, double value) {
    if (typed(flag)) to = static_cast<float>(value);
  };
  set("--temperature", s.sampling.temperature, temperature);
  set("--top-p", s.sampling.top_p, top_p);
  set("--min-p", s.sampling.min_p, min_p);
  set("--typical-p", s.sampling.typical_p, typical_p);
  set("--repetition-penalty", s.sampling.repetition_penalty, repetition_penalty);
  set("--presence-penalty", s.sampling.presence_penalty, presence_penalty);
  set("--frequency-penalty", s.sampling.frequency_penalty, frequency_penalty);
  if (typed("--top-k")) s.sampling.top_k = top_k;
  // Whoever asks for chance gets it, though the files recommend the likeliest.
  for (const char* flag : {"--temperature", "--top-k", "--top-p", "--min-p", "--typical-p"}) {
    if (typed(flag)) s.sampling.greedy = false;
  }
  if (greedy) s.sampling.greedy = true;
  if (typed("--seed")) s.sampling.seed = seed;
  s.sampling.logit_bias = biases();
  set_search(s);
  if (typed("--json-schema")) s.mask = opened.constrain(OutputFormat::json_schema, read_text(json_schema));
  if (typed("--grammar")) s.mask = opened.constrain(OutputFormat::gbnf, read_text(grammar));
  if (typed("--regex")) s.mask = opened.constrain(OutputFormat::regex, regex);
  return s;
}

std::vector<LoraAdapter> read_loras(const std::vector<std::string>& texts) {
  std::vector<LoraAdapter> out;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    LoraAdapter adapter{text.substr(0, equals)};
    if (equals != std::string::npos) {
      const char* const end = text.data() + text.size();
      const auto scale = std::from_chars(text.data() + equals + 1, end, adapter.scale);
      if (scale.ec != std::errc{} || scale.ptr != end) {
        throw UsageError(fmt::format("--lora {}: expected a path, and perhaps a scale, such as adapter/=0.5", text));
      }
    }
    out.push_back(std::move(adapter));
  }
  return out;
}

std::string read_text(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 30;
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) fail(ErrorCode::io, "'{}' cannot be opened for reading", path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  std::array<char, 65536> part;
  while (in.read(part.data(), part.size()), in.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most) fail(ErrorCode::invalid_argument, "'{}' has more than {} bytes", path, most);
  }
  if (in.bad()) fail(ErrorCode::io, "'{}' cannot be read", path);
  return text;
}

}  // namespace sdx::cli
