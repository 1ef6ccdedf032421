#pragma once

#include "cli/arguments.h"
#include "cli/command.h"

// Every subcommand, in the order in which `sdx --help` lists them: its name and the function that its file defines. A line here
// is all that the program, its help and the completion scripts need.
#define SDX_COMMANDS(COMMAND)                     \
  COMMAND("run", add_run)                         \
  COMMAND("inspect", add_inspect)                 \
  COMMAND("explain", add_explain)                 \
  COMMAND("verify", add_verify)                   \
  COMMAND("providers", add_providers)             \
  COMMAND("doctor", add_doctor)                   \
  COMMAND("pull", add_pull)                       \
  COMMAND("models", add_models)                   \
  COMMAND("faces", add_faces)                     \
  COMMAND("bench", add_bench)                     \
  COMMAND("sweep", add_sweep)                     \
  COMMAND("diff", add_diff)                       \
  COMMAND("report", add_report)                   \
  COMMAND("compare-outputs", add_compare_outputs) \
  COMMAND("convert", add_convert)                 \
  COMMAND("quantize", add_quantize)               \
  COMMAND("generate", add_generate)               \
  COMMAND("chat", add_chat)                       \
  COMMAND("perplexity", add_perplexity)           \
  COMMAND("tokenize", add_tokenize)               \
  COMMAND("embed", add_embed)                     \
  COMMAND("rerank", add_rerank)                   \
  COMMAND("artifacts", add_artifacts)             \
  COMMAND("train", add_train)                     \
  COMMAND("checkpoint", add_checkpoint)           \
  COMMAND("serve", add_serve)                     \
  COMMAND("cache", add_cache)                     \
  COMMAND("init", add_init)                       \
  COMMAND("build", add_build)                     \
  COMMAND("completion", add_completion)           \
  COMMAND("help", add_help)

namespace sdx::cli {

#define SDX_DECLARE_COMMAND(name, function) void function(const Command& app, Action& action);
SDX_COMMANDS(SDX_DECLARE_COMMAND)
#undef SDX_DECLARE_COMMAND

}  // namespace sdx::cli
