// sdx train

#include <memory>
#include <sdx/error.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/train/loop_tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx artifacts model.onnx -o art/ --loss cross-entropy --optimizer adamw\n"
    "  sdx train art/ --data batches.npz --epochs 5 --lr 0.001 --export trained.onnx\n"
    "  sdx train art/ --data photos/ --validation-split 0.1 --augment flip,crop --epochs 30 --patience 4 -o photos.ckpt\n"
    "  sdx train art/ --data reviews.jsonl --tokenizer model/ --batch 16 --lr 2e-5 --schedule linear --warmup 100\n"
    "  sdx train art/ --data table.csv --label price --eval test.csv --report training.html\n"
    "  sdx train art/ --data photos/ --cache-features --epochs 50          # only the last layer is trained\n"
    "  sdx train art/ --data batches.npz --epochs 5 --resume               # after Ctrl-C, or anything else\n"
    "Data: arrays (.npz, or a folder of .npy) by the inputs' names or in their order; a folder with a folder of pictures for "
    "each\n"
    "class; .csv or .tsv with a column for the label; .jsonl with a key for each input, or with text and label.\n";

struct TrainCommand {
  train::loop::Request request;
  Command command;
  std::string data, eval, output, export_model, report, labels, project, tokenizer;

  int run();
};

train::loop::Console console() {
  train::loop::Console out;
  out.print = [](std::string_view text) { print(text); };
  out.flush = [] { flush_output(); };
  out.note = [](std::string_view text) { note(text); };
  out.draw = [](std::string_view text) { draw(text); };
  out.terminal = stderr_is_terminal();
  return out;
}

int TrainCommand::run() {
  request.data = data;
  request.eval = eval;
  request.output = output;
  request.export_model = export_model;
  request.report = report;
  request.labels = labels;
  request.project = project;
  request.tokenizer = tokenizer;
  const train::loop::Tools& tools = train_loop_tools();
  try {
    tools.check(request);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw;
    throw UsageError(e.what());
  }
  return tools.run(request, console());
}

void add_training_flags(const Command& command, TrainCommand& c) {
  train::loop::Request& r = c.request;
  command.add_option("--epochs", r.epochs, "How often all samples are gone through")->type_name("N");
  command.add_option("--batch", r.batch, "Samples in a batch (default: as the data come in batches, else 32)")->type_name("N");
  command.add_option("--lr", r.learning_rate, "The learning rate (default: 0.001)")->type_name("X");
  command.add_option("--schedule", r.schedule, "How the rate falls: constant, linear or cosine")->type_name("WORD");
  command.add_option("--warmup", r.warmup, "Updates in which the rate rises from 0")->type_name("N");
  command.add_option("--accumulate", r.accumulate, "Batches whose gradients are summed for an update")->type_name("N");
  command.add_option("--clip", r.clip, "The largest norm of all gradients together")->type_name("X");
  command
      .add_option("--optimizer", r.optimizer,
                  "adamw, adam, sgd, rmsprop, adagrad or lion (default: that of the artifacts, else adamw)")
      ->type_name("WORD");
  command.add_option("--weight-decay", r.weight_decay, "How strongly weights are drawn to 0")->type_name("X");
  command.add_option("--seed", r.seed, "Of the order, of random changes and of dropout")->type_name("N");
  command.add_option("--patience", r.patience, "End after so many epochs without a lower validation loss")->type_name("N");
  command.add_flag("--no-shuffle", r.no_shuffle, "Take the samples in their order");
  command.add_flag("--drop-last", r.drop_last, "Leave out a last batch that is not full");
  command.add_flag("--bfloat16", r.bfloat16, "Compute products and convolutions in bfloat16");
  command.add_flag("--cache-features", r.cache_features, "Compute what lies before the first trained layer once for each sample");
  command.add_option("-t,--threads", r.threads, "Threads that train; 0: all cores")->type_name("N");
}

void add_data_flags(const Command& command, TrainCommand& c) {
  train::loop::Request& r = c.request;
  command.add_option("--eval", c.eval, "Data for validation after each epoch")->type_name("DATA");
  command.add_option("--validation-split", r.validation_split, "Share of the data that is kept for validation")
      ->type_name("SHARE");
  command.add_option("--label", r.label, "The column or key of the labels")->type_name("NAME");
  command.add_option("--text", r.text, "The column or key of the texts")->type_name("NAME");
  command.add_option("--tokenizer", c.tokenizer, "The texts' tokenizer: a file, or a model's folder")->type_name("PATH");
  command.add_option("--max-length", r.max_length, "Most tokens of a text")->type_name("N");
  command.add_option("--project", c.project, "Prepare pictures as this project file says")->type_name("FILE");
  command.add_option("--resize", r.resize, "The pictures' size, where the model leaves it open")->type_name("WxH");
  command.add_option("--normalize", r.normalize, "How pixels become numbers: 0-1, -1-1, imagenet, clip, none")->type_name("NAME");
  command.add_option("--mean", r.mean, "Taken from the pixels, for each channel")->type_name("X,…")->delimiter(',').one_word();
  command.add_option("--std", r.deviation, "What they are divided by then")->type_name("X,…")->delimiter(',').one_word();
  command.add_option("--augment", r.augment, "Random changes of pictures: flip, crop, colour, joined by commas")
      ->type_name("WORDS");
  command.add_option("--on-bad", r.on_bad, "What cannot be read: stop, or skip it")->type_name("WORD");
  command.add_option("--memory", r.memory, "Memory for decoded data")->type_name("SIZE");
  command.add_option("--workers", r.workers, "Threads that decode pictures; 0: all cores")->type_name("N");
}

void add_result_flags(const Command& command, TrainCommand& c) {
  train::loop::Request& r = c.request;
  command.add_option("-o,--output", c.output, "The checkpoint (default: 'trained' beside the artifacts)")
      ->type_name("CHECKPOINT");
  command.add_option("--save-every", r.save_every, "Updates between checkpoints, besides those after epochs")->type_name("N");
  command.add_flag("--resume", r.resume, "Go on where the checkpoint was written, with the losses of a training without a stop");
  command.add_option("--export", c.export_model, "Write the trained model, for inference")->type_name("FILE");
  command.add_option("--outputs", r.outputs, "Its outputs (default: what the loss is computed of)")
      ->type_name("NAME,…")
      ->delimiter(',')
      .one_word();
  command.add_option("--labels", c.labels, "Write the classes' names, one a line")->type_name("FILE");
  command.add_option("--report", c.report, "Write curves and figures as a page")->type_name("FILE");
  command.add_flag("--json", r.json, "A line of JSON for each batch, epoch and checkpoint");
}

}  // namespace

void add_train(const Command& app, Action& action) {
  const Command command = app.add_subcommand("train", "Train a model on data");
  const auto c = std::make_shared<TrainCommand>();
  c->command = command;
  command->add_option("DIR", c->request.artifacts, "Training artifacts: a folder, or the training model in one")->required();
  command->add_option("--data", c->data, "Arrays, pictures, a table or texts: see below")->type_name("DATA")->required();
  add_training_flags(command, *c);
  add_data_flags(command, *c);
  add_result_flags(command, *c);
  command->footer(kExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
