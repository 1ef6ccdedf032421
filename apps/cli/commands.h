#pragma once

#include "cli/arguments.h"
#include "cli/command.h"

// A build with SDX_FEW_COMMANDS has the commands that run and examine models and find faces, and names the others: SDX_FURTHER.
#ifdef SDX_FEW_COMMANDS
#define SDX_FURTHER(COMMAND, name, function) COMMAND(name, leave_out)
#else
#define SDX_FURTHER(COMMAND, name, function) COMMAND(name, function)
#endif

// Every subcommand, in the order in which `sdx --help` lists them: its name and the function that its file defines. A line here
// is all that the program, its help and the completion scripts need.
#define SDX_COMMANDS(COMMAND)                                  \
  COMMAND("run", add_run)                                      \
  COMMAND("inspect", add_inspect)                              \
  COMMAND("explain", add_explain)                              \
  SDX_FURTHER(COMMAND, "verify", add_verify)                   \
  COMMAND("providers", add_providers)                          \
  COMMAND("doctor", add_doctor)                                \
  COMMAND("pull", add_pull)                                    \
  COMMAND("models", add_models)                                \
  COMMAND("ls", add_ls)                                        \
  COMMAND("show", add_show)                                    \
  COMMAND("ps", add_ps)                                        \
  COMMAND("rm", add_rm)                                        \
  COMMAND("faces", add_faces)                                  \
  SDX_FURTHER(COMMAND, "bench", add_bench)                     \
  SDX_FURTHER(COMMAND, "sweep", add_sweep)                     \
  SDX_FURTHER(COMMAND, "diff", add_diff)                       \
  SDX_FURTHER(COMMAND, "report", add_report)                   \
  SDX_FURTHER(COMMAND, "compare-outputs", add_compare_outputs) \
  SDX_FURTHER(COMMAND, "convert", add_convert)                 \
  SDX_FURTHER(COMMAND, "quantize", add_quantize)               \
  SDX_FURTHER(COMMAND, "generate", add_generate)               \
  SDX_FURTHER(COMMAND, "chat", add_chat)                       \
  SDX_FURTHER(COMMAND, "perplexity", add_perplexity)           \
  SDX_FURTHER(COMMAND, "tokenize", add_tokenize)               \
  SDX_FURTHER(COMMAND, "embed", add_embed)                     \
  SDX_FURTHER(COMMAND, "rerank", add_rerank)                   \
  SDX_FURTHER(COMMAND, "transcribe", add_transcribe)           \
  SDX_FURTHER(COMMAND, "artifacts", add_artifacts)             \
  SDX_FURTHER(COMMAND, "train", add_train)                     \
  SDX_FURTHER(COMMAND, "checkpoint", add_checkpoint)           \
  SDX_FURTHER(COMMAND, "serve", add_serve)                     \
  COMMAND("cache", add_cache)                                  \
  SDX_FURTHER(COMMAND, "init", add_init)                       \
  SDX_FURTHER(COMMAND, "build", add_build)                     \
  COMMAND("completion", add_completion)                        \
  COMMAND("help", add_help)

namespace sdx::cli {

#define SDX_DECLARE_COMMAND(name, function) void function(const Command& app, Action& action);
SDX_COMMANDS(SDX_DECLARE_COMMAND)
#undef SDX_DECLARE_COMMAND

// Adds nothing: the command is in the table only to be known by name.
void leave_out(const Command& app, Action& action);

}  // namespace sdx::cli
