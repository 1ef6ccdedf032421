// sdx perplexity

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "cli/text/generation_flags.h"

namespace sdx::cli {
namespace {

constexpr const char* kPerplexityExamples =
    "Examples:\n"
    "  sdx perplexity SmolLM2-135M-Instruct.Q4_1.gguf -i book.txt\n"
    "  sdx perplexity model/ -i book.txt --window 1024 --stride 512 --json\n"
    "Each token except the first is scored once, given the tokens before it in its window. Windows overlap if the stride is\n"
    "smaller than the window. A small stride takes longer and shows more precisely what the model can do.\n";

struct PerplexityCommand {
  std::string model, input = "-";
  std::vector<std::string> loras;
  PerplexitySettings settings;
  int threads = 0, accuracy_level = 0;
  bool json = false;

  int run();
};

int PerplexityCommand::run() {
  const std::string text = read_text(input);
  LanguageModelOptions options;
  options.session.threads = threads;
  options.accuracy_level = accuracy_level;
  options.loras = read_loras(loras);
  const std::unique_ptr<text::OpenModel> opened = load_module<text::Tools>().open(text_model(model), options);
  Perplexity p;
  {
    Progress progress("tokens");
    const auto shown = [](std::int64_t n) { return static_cast<int>(std::min<std::int64_t>(n, 2'000'000'000)); };
    settings.progress = [&](std::int64_t done, std::int64_t all) { progress.show(shown(done), shown(all)); };
    p = opened->perplexity(text, settings);
  }
  if (json) {
    print(
        fmt::format("{{\"perplexity\":{},\"nll\":{},\"tokens\":{},\"scored\":{},\"windows\":{},\"seconds\":{:.3f},"
                    "\"tokens_per_s\":{:.2f}}}\n",
                    p.perplexity, p.nll, p.tokens, p.scored, p.windows, p.seconds, p.tokens_per_s));
  } else {
    print(fmt::format("perplexity {:.4f} (nll {:.6f}) of {} tokens, {} scored in {} {}; {:.1f} tokens/s\n", p.perplexity, p.nll,
                      p.tokens, p.scored, p.windows, p.windows == 1 ? "window" : "windows", p.tokens_per_s));
  }
  return kOk;
}

}  // namespace

void add_perplexity(const Command& app, Action& action) {
  const Command command = app.add_subcommand("perplexity", "Measure how well a language model predicts a text");
  const auto c = std::make_shared<PerplexityCommand>();
  command->add_option("MODEL", c->model, "A .gguf file, or a folder that contains a language model")->required();
  command->add_option("-i,--input", c->input, "The text; '-' (default) reads standard input")->type_name("FILE");
  command->add_option("--window", c->settings.window, "Tokens per window; 0: the model's context, at most 2048")->type_name("N");
  command->add_option("--stride", c->settings.stride, "Distance between windows in tokens; 0: half a window")->type_name("N");
  command->add_option("--lora", c->loras, "LoRA adapter and its scale (1); may be repeated")->type_name("PATH[=X]")->one_word();
  command->add_option("-t,--threads", c->threads, "Threads; 0: one per core")->type_name("N");
  add_accuracy_level(command, c->accuracy_level);
  command->add_flag("--json", c->json, "Print {\"perplexity\", \"nll\", \"tokens\", …}");
  command->footer(kPerplexityExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
