// sdx compare-outputs

#include <memory>
#include <optional>
#include <sdx/compare.hpp>
#include <sdx/runner.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/inputs.h"

namespace sdx::cli {
namespace {

constexpr const char* kCompareOutputsExamples =
    "Examples:\n"
    "  sdx compare-outputs model.onnx -b cpu -b ort:cpu\n"
    "  sdx compare-outputs model.onnx -b cpu+SDX_CPU_KERNEL=reference -b cpu\n"
    "  sdx compare-outputs model.onnx -b cpu+no-optimize -b cpu -i input=@photo.npy --json\n"
    "The first backend is the reference. Settings follow a backend, each after a '+': no-optimize, threads=N, disable=PASS,\n"
    "SDX_NAME=VALUE (an environment variable). The exit code is 1 if an output differs.\n";

struct CompareCommand {
  SessionFlags session;
  InputFlags inputs;
  std::vector<std::string> backends;
  std::optional<double> atol, rtol;
  bool no_bisect = false, json = false;
  int run() const;
};

int CompareCommand::run() const {
  CompareOptions o;
  o.backends = backends;
  if (o.backends == std::vector<std::string>{"cpu"}) {
    throw UsageError("-b cpu: that compares cpu with itself; name another backend, or settings: -b ort:cpu, -b cpu+no-optimize");
  }
  if (o.backends.size() == 1) o.backends.insert(o.backends.begin(), "cpu");
  if (o.backends.size() != 2) throw UsageError("compare-outputs takes two backends: -b cpu -b ort:cpu");
  for (const auto& t : {atol, rtol}) {
    if (t && !(*t >= 0)) throw UsageError("--atol and --rtol must be numbers that are not negative");
  }
  o.session = session.asked().session.values;
  o.resolve = backend_names();
  o.allow_fallback = !session.given.session.values.strict;
  o.atol = atol;
  o.rtol = rtol;
  o.bisect = !no_bisect;
  o.seed = inputs.seed;
  try {
    check_backends(o);
  } catch (const Error& e) {
    throw UsageError(e.message());
  }
  const project::ResolvedModel model = resolve(session);
  o.model = model.model;
  const std::vector<ValueSpec> specs = model_inputs(o.model, o.session);
  o.inputs = inputs.given(specs);
  o.shapes = inputs.given_shapes(specs);
  OutputsComparison c;
  {
    Progress bar("comparing");
    int steps = 0;
    o.progress = [&](const std::string&) { bar.show(std::min(++steps, 10), 10); };
    c = compare_outputs(o);
  }
  if (o.backends[0] == o.backends[1]) note("note: both sides are the same, so a difference is random variation of one backend");
  const auto is_fallback = [](const std::string& n) { return n.starts_with("FALLBACK: "); };
  if (json) {
    for (const std::string& n : c.notes) {
      if (is_fallback(n)) note("warning: " + n.substr(n.find(' ') + 1));
    }
    print(to_json(c));
  } else {
    if (is_quiet()) std::erase_if(c.notes, [&](const std::string& n) { return !is_fallback(n); });
    print_coloured(to_text(c, stdout_is_terminal() ? terminal_columns() : 0),
                   {{"DIFFERS", Colour::red}, {"same", Colour::green}});
  }
  return c.pass() ? kOk : kFailed;
}

}  // namespace

void add_compare_outputs(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("compare-outputs", "Compare the results of two backends and find the first node that differs");
  const auto c = std::make_shared<CompareCommand>();
  c->session.add_to(command);
  for (const char* name : {"--provider", "--runtime"}) command.remove_option(name);
  c->session.given.session.values.strict = true;  // the compared backends must be the requested ones
  c->inputs.add_to(command);
  command.remove_option("--random");  // missing inputs are generated
  command
      ->add_option("-b,-p,--backend,--provider", c->backends,
                   "Provider chain, with settings after '+'; give two, the first is the reference (default: cpu)")
      ->one_word()
      ->required()
      ->type_name("CHAIN");
  command->add_option("--atol", c->atol, "Allowed absolute difference, instead of the automatic tolerance")->type_name("X");
  command
      ->add_option("--rtol", c->rtol, "Allowed difference relative to the expected element, instead of the automatic tolerance")
      ->type_name("X");
  command->add_flag("--no-bisect", c->no_bisect, "Do not search for the first node that differs");
  command->add_flag("--json", c->json, "Print JSON");
  command->footer(kCompareOutputsExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
