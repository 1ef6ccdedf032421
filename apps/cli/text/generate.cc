// sdx generate

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/text/generation_flags.h"

namespace sdx::cli {
namespace {

constexpr const char* kGenerateExamples =
    "Examples:\n"
    "  sdx generate SmolLM2-135M-Instruct.Q4_1.gguf -p \"The capital of France is\" --max-tokens 20\n"
    "  cat prompt.txt | sdx generate model/ -p - --greedy --json\n"
    "  sdx generate model/ -p \"A person as JSON: \" --json-schema person.json\n"
    "The prompt is used unchanged. `sdx chat` formats questions as the model expects them.\n"
    "Settings without a flag are those that the model's files recommend.\n";

struct GenerateCommand {
  GenerationFlags flags;
  std::string prompt;
  int n = 1, logprobs = -1;
  bool json = false;

  int run() const;
};

std::string share_json(const text::OpenModel& model, const TokenLogprob& p) {
  return fmt::format("\"id\":{},\"token\":{},\"logprob\":{}", p.id, json_string(model.token(p.id)), json_number(p.logprob));
}

std::string logprobs_json(const text::OpenModel& model, const Choice& choice) {
  std::string out;
  for (std::size_t i = 0; i < choice.logprobs.size(); ++i) {
    std::string top;
    for (const TokenLogprob& p : choice.top_logprobs[i]) {
      top += fmt::format("{}{{{}}}", top.empty() ? "" : ",", share_json(model, p));
    }
    out += fmt::format("{}{{{},\"top\":[{}]}}", out.empty() ? "" : ",", share_json(model, choice.logprobs[i]), top);
  }
  return "[" + out + "]";
}

// Figures about speculation, beams and a sliding context; "" without any of them.
std::string search_json(const GenerationSettings& settings, const Generation& g) {
  std::string out;
  if (settings.lookup > 0 || settings.draft) {
    out += fmt::format(",\"speculation\":{{\"drafted_tokens\":{},\"accepted_tokens\":{}}}", g.drafted_tokens, g.accepted_tokens);
  }
  if (settings.overflow == ContextOverflow::slide) out += fmt::format(",\"slides\":{}", g.slides);
  return out;
}

std::string generation_json(const text::OpenModel& model, const GenerationSettings& settings, const Generation& g,
                            std::int64_t cached) {
  const bool logprobs = settings.logprobs >= 0;
  std::string choices;
  for (const Choice& c : g.choices) {
    choices += fmt::format("{}{{\"text\":{},\"tokens\":[{}],\"finish_reason\":{},\"logprobs\":{}{}}}", choices.empty() ? "" : ",",
                           json_string(c.text), fmt::join(c.tokens, ","), json_string(c.finish_reason),
                           logprobs ? logprobs_json(model, c) : "null",
                           settings.beams > 1 ? fmt::format(",\"score\":{:.6f}", c.score) : "");
  }
  return fmt::format(
      "{{\"choices\":[{}],\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{},\"cached_tokens\":{}}},"
      "\"timings\":{{\"load_ms\":{:.3f},\"first_token_ms\":{:.3f},\"prompt_tokens_per_s\":{:.2f},\"tokens_per_s\":{:.2f}}}{}}}\n",
      choices, g.prompt_tokens, g.completion_tokens, cached, model.info().load_ms, g.first_token_ms, g.prompt_tokens_per_s,
      g.tokens_per_s, search_json(settings, g));
}

int GenerateCommand::run() const {
  flags.check();
  if (logprobs >= 0 && !json) throw UsageError("--logprobs needs --json");
  const std::string text = prompt == "-" ? read_text("-") : prompt;
  const std::unique_ptr<text::OpenModel> model = flags.open();
  GenerationSettings settings = flags.settings(*model);
  settings.n = n;
  settings.logprobs = logprobs;
  int shown = 0;
  const auto stream = [&](const GeneratedToken& token) {
    if (token.choice != shown) print("\n\n");  // answers come one behind the other
    shown = token.choice;
    if (!token.text.empty()) {
      print_exact(token.text);
      flush_output();
    }
    return true;
  };
  std::int64_t cached = 0;
  const Generation g = model->generate(text, true, settings, json ? OnToken() : OnToken(stream), cached);
  print(json ? generation_json(*model, settings, g, cached) : "\n");
  return kOk;
}

}  // namespace

void add_generate(const Command& app, Action& action) {
  const Command command = app.add_subcommand("generate", "Continue a text with a language model");
  const auto c = std::make_shared<GenerateCommand>();
  c->flags.add_to(command);
  command->add_option("-p,--prompt", c->prompt, "The text; '-' reads standard input")->type_name("TEXT")->required();
  command->add_option("-n,--n", c->n, "Number of answers; the prompt is computed once")->type_name("N");
  command
      ->add_option("--logprobs", c->logprobs, "With --json: log probabilities of the tokens, and of the N likeliest alternatives")
      ->type_name("N")
      ->range(0, 1000);
  command->add_flag("--json", c->json, "Print {\"choices\", \"usage\", \"timings\"}");
  command->footer(kGenerateExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
