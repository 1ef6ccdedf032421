#include "serve/openai/fill.h"

#include <array>
#include <optional>
#include <string_view>

#include "serve/openai/generation.h"

namespace sdx::serve::openai {
namespace {

// The marks in front of the text before, of that behind, and of the answer. Without the last, the text behind comes first.
struct Marks {
  std::string_view before, after, middle;
};
constexpr std::array<Marks, 8> kMarks{{{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                                       {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                                       {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
                                       {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
                                       {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
                                       {"▁<PRE>", "▁<SUF>", "▁<MID>"},
                                       {"<PRE>", "<SUF>", "<MID>"},
                                       {"[PREFIX]", "[SUFFIX]", ""}}};
constexpr std::array<std::string_view, 9> kEnds{"<|endoftext|>", "<|fim_pad|>", "<fim_pad>", "<|repo_name|>", "<|file_sep|>",
                                                "<file_sep>",    "▁<EOT>",      "<EOT>",     "<|cursor|>"};
constexpr std::array<std::string_view, 2> kFiles{"<|file_sep|>", "<file_sep>"};

class Filling {
 public:
  Filling(const LanguageModel& model, const Marks& marks) : model_(model), words_(model.tokenizer()), marks_(marks) {
    const TokenList added = words_.encode("", true).ids;
    if (model.info().bos && !added.empty() && added.front() == *model.info().bos) out_.push_back(added.front());
  }

  TokenList make(const FillRequest& r) {
    add_others(r);
    if (marks_.middle.empty()) {
      mark(marks_.after);
      text(r.after);
      mark(marks_.before);
      text(r.before);
    } else {
      mark(marks_.before);
      text(r.before);
      mark(marks_.after);
      text(r.after);
      mark(marks_.middle);
    }
    text(r.begun);
    return std::move(out_);
  }

 private:
  void mark(std::string_view name) {
    if (const auto id = words_.token_to_id(name)) out_.push_back(*id);
  }

  void text(const std::string& text) {
    check_length(words_, text, PromptKind::completion, model_.info().context);
    const TokenList own = words_.encode(text, words_.special_places(text), false).ids;
    out_.insert(out_.end(), own.begin(), own.end());
  }

  void add_others(const FillRequest& r) {
    if (r.others.empty()) return;
    std::string_view separator;
    for (const std::string_view name : kFiles) {
      if (separator.empty() && words_.token_to_id(name)) separator = name;
    }
    for (const auto& [name, content] : r.others) {
      mark(separator);
      text(name + "\n" + content + "\n");
    }
    mark(separator);
  }

  const LanguageModel& model_;
  const Tokenizer& words_;
  Marks marks_;
  TokenList out_;
};

}  // namespace

TokenList fill_prompt(const LanguageModel& model, const FillRequest& request, const std::string& param) {
  for (const Marks& marks : kMarks) {
    const auto has = [&](std::string_view name) { return name.empty() || model.tokenizer().token_to_id(name).has_value(); };
    if (has(marks.before) && has(marks.after) && has(marks.middle)) return Filling(model, marks).make(request);
  }
  refuse("Unsupported parameter: '" + param + "'. This model has no tokens for text between two others.", param,
         "unsupported_parameter");
}

void add_fill_ends(const LanguageModel& model, std::vector<TokenId>& stop_tokens) {
  const auto add = [&](std::string_view name) {
    if (name.empty()) return;
    if (const auto id = model.tokenizer().token_to_id(name)) stop_tokens.push_back(*id);
  };
  for (const std::string_view name : kEnds) add(name);
  for (const Marks& marks : kMarks) {
    for (const std::string_view name : {marks.before, marks.after, marks.middle}) add(name);
  }
}

void fill_in(ChatRequest& chat, const LanguageModel& model, const FillRequest& request, const std::string& param) {
  chat.raw = fill_prompt(model, request, param);
  add_fill_ends(model, chat.generation.stop_tokens);
}

}  // namespace sdx::serve::openai
