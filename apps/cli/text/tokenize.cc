// sdx tokenize

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "text/tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kTokenizeExamples =
    "Examples:\n"
    "  sdx tokenize model/ \"Hello world\"\n"
    "  sdx tokenize model/tokenizer.json - --json        # reads standard input\n"
    "  sdx tokenize model.gguf --decode 15043,3186\n"
    "MODEL is a tokenizer.json, a SentencePiece model, a vocab.txt, a GGUF file, or a folder with one of these.\n";

struct TokenizeCommand {
  std::string model, text, ids;
  bool no_special = false, json = false;
  Command command;

  int run() const;
};

std::vector<std::uint32_t> parse_ids(std::string_view list) {
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; at < list.size();) {
    if (list[at] == ',' || list[at] == ' ') {
      ++at;
      continue;
    }
    std::uint32_t id = 0;
    const auto result = std::from_chars(list.data() + at, list.data() + list.size(), id);
    const auto end = static_cast<std::size_t>(result.ptr - list.data());
    if (result.ec != std::errc{} || (end < list.size() && list[end] != ',' && list[end] != ' ')) {
      throw UsageError(fmt::format("--decode {}: expected numbers of tokens, separated by commas or spaces", list));
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

std::string read_standard_input() {
  constexpr std::size_t most = std::size_t{1} << 30;  // what a tokenizer takes at once
  std::string text;
  std::array<char, 65536> part;
  while (std::cin.read(part.data(), part.size()), std::cin.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > most) fail(ErrorCode::invalid_argument, "standard input has more than {} bytes; encode it in parts", most);
  }
  return text;
}

std::string ids_text(const std::vector<std::uint32_t>& ids, const char* between) {
  return fmt::format("{}", fmt::join(ids, between));
}

std::string encoding_json(const Encoding& e) {
  std::string offsets;
  for (const TextRange& o : e.offsets) offsets += fmt::format("{}[{},{}]", offsets.empty() ? "" : ",", o.begin, o.end);
  return fmt::format("{{\"ids\":[{}],\"tokens\":{},\"offsets\":[{}]}}\n", ids_text(e.ids, ","), json_list(e.tokens), offsets);
}

int TokenizeCommand::run() const {
  const bool decodes = command.count("--decode") > 0, encodes = command.count("TEXT") > 0;
  if (decodes == encodes) throw UsageError("expected TEXT, or --decode with the numbers of tokens");
  text::TokenizeRequest request;
  request.model = text_model(model);
  request.special_tokens = !no_special;
  if (decodes) {
    request.decode = parse_ids(ids);
  } else {
    request.text = text == "-" ? read_standard_input() : text;
  }
  const text::TokenizeResult result = load_module<text::Tools>().tokenize(request);
  if (decodes) {
    print_exact(json ? fmt::format("{{\"text\":{}}}\n", json_string(result.text)) : result.text + "\n");
  } else {
    print(json ? encoding_json(result.encoding) : ids_text(result.encoding.ids, " ") + "\n");
  }
  return kOk;
}

}  // namespace

void add_tokenize(const Command& app, Action& action) {
  const Command command = app.add_subcommand("tokenize", "Convert text to a language model's token ids, or back");
  const auto c = std::make_shared<TokenizeCommand>();
  c->command = command;
  command->add_option("MODEL", c->model, "A tokenizer file, or a folder that contains one")->required();
  command->add_option("TEXT", c->text, "The text; '-' reads standard input");
  command->add_option("--decode", c->ids, "Decode these comma-separated token ids instead")->type_name("IDS");
  command->add_flag("--no-special", c->no_special, "Add no special tokens, and omit them from decoded text");
  command->add_flag("--json", c->json, "Print {\"ids\", \"tokens\", \"offsets\"}, or {\"text\"}; offsets count code points");
  command->footer(kTokenizeExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
