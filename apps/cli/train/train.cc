// sdx train

#include <memory>
#include <sdx/error.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "train/loop/tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  sdx artifacts model.onnx -o art/ --loss cross-entropy --optimizer adamw\n"
    "  sdx train art/ --data batches.npz --epochs 5 --lr 0.001 --export trained.onnx\n"
    "  sdx train art/ --data photos/ --validation-split 0.1 --augment flip,crop --epochs 30 --patience 4 -o photos.ckpt\n"
    "  sdx train art/ --data reviews.jsonl --tokenizer model/ --batch 16 --lr 2e-5 --schedule linear --warmup 100\n"
    "  sdx train art/ --data table.csv --label price --eval test.csv --report training.html\n"
    "  sdx train art/ --data photos/ --cache-features --epochs 50          # only the last layer is trained\n"
    "  sdx train art/ --data batches.npz --epochs 5 --resume               # continues after an interruption\n"
    "Data: arrays (.npz, or a folder of .npy) matched to inputs by name or order; a folder with one folder of pictures per "
    "class;\n"
    ".csv or .tsv with a label column; .jsonl with a key for each input, or with text and label.\n";

struct TrainCommand {
  train::loop::Request request;
  Command command;
  std::string data, eval, output, export_model, report, labels, project, tokenizer;

  int run();
};

int TrainCommand::run() {
  request.data = data;
  request.eval = eval;
  request.output = output;
  request.export_model = export_model;
  request.report = report;
  request.labels = labels;
  request.project = project;
  request.tokenizer = tokenizer;
  const train::loop::Tools& tools = load_module<train::loop::Tools>();
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
  command.add_option("--epochs", r.epochs, "Number of passes over all samples")->type_name("N");
  command.add_option("--batch", r.batch, "Samples per batch (default: the batches of the data, else 32)")->type_name("N");
  command.add_option("--lr", r.learning_rate, "Learning rate (default: 0.001)")->type_name("X");
  command.add_option("--schedule", r.schedule, "How the learning rate changes: constant, linear or cosine")->type_name("WORD");
  command.add_option("--warmup", r.warmup, "Updates during which the learning rate rises from 0")->type_name("N");
  command.add_option("--accumulate", r.accumulate, "Batches whose gradients are summed for each update")->type_name("N");
  command.add_option("--clip", r.clip, "Limit for the norm of all gradients")->type_name("X");
  command
      .add_option("--optimizer", r.optimizer,
                  "adamw, adam, sgd, rmsprop, adagrad or lion (default: as in the artifacts, else adamw)")
      ->type_name("WORD");
  command.add_option("--weight-decay", r.weight_decay, "Weight decay")->type_name("X");
  command.add_option("--seed", r.seed, "Seed for order, random changes and dropout")->type_name("N");
  command.add_option("--patience", r.patience, "Stop after N epochs without a lower validation loss")->type_name("N");
  command.add_flag("--no-shuffle", r.no_shuffle, "Do not shuffle samples");
  command.add_flag("--drop-last", r.drop_last, "Drop the last batch if it is not full");
  command.add_flag("--bfloat16", r.bfloat16, "Compute products and convolutions in bfloat16");
  command.add_flag("--cache-features", r.cache_features,
                   "Compute the layers before the first trained one only once for each sample");
  command.add_option("-t,--threads", r.threads, "Threads for training; 0: all cores")->type_name("N");
}

void add_data_flags(const Command& command, TrainCommand& c) {
  train::loop::Request& r = c.request;
  command.add_option("--eval", c.eval, "Data for validation after each epoch")->type_name("DATA");
  command.add_option("--validation-split", r.validation_split, "Share of the data that is used for validation")
      ->type_name("SHARE");
  command.add_option("--label", r.label, "Column or key of the labels")->type_name("NAME");
  command.add_option("--text", r.text, "Column or key of the texts")->type_name("NAME");
  command.add_option("--tokenizer", c.tokenizer, "Tokenizer for texts: a file, or a model's folder")->type_name("PATH");
  command.add_option("--max-length", r.max_length, "Maximum number of tokens per text")->type_name("N");
  command.add_option("--project", c.project, "Prepare pictures according to this project file")->type_name("FILE");
  command.add_option("--resize", r.resize, "Size of pictures, if the model leaves it open")->type_name("WxH");
  command.add_option("--normalize", r.normalize, "Value range of pixels: 0-1, -1-1, imagenet, clip, none")
      ->type_name("NAME")
      ->completed_by({"0-1", "-1-1", "imagenet", "clip", "none"});
  command.add_option("--mean", r.mean, "Subtracted from pixels, for each channel")->type_name("X,…")->delimiter(',').one_word();
  command.add_option("--std", r.deviation, "Divisor of pixels, for each channel")->type_name("X,…")->delimiter(',').one_word();
  command.add_option("--augment", r.augment, "Random changes to pictures: flip, crop, colour, comma-separated")
      ->type_name("WORDS");
  command.add_option("--on-bad", r.on_bad, "Unreadable data: stop, or skip")->type_name("WORD");
  command.add_option("--memory", r.memory, "Memory limit for decoded data")->type_name("SIZE");
  command.add_option("--workers", r.workers, "Threads that decode pictures; 0: all cores")->type_name("N");
}

void add_result_flags(const Command& command, TrainCommand& c) {
  train::loop::Request& r = c.request;
  command.add_option("-o,--output", c.output, "Checkpoint to write (default: 'trained' beside the artifacts)")
      ->type_name("CHECKPOINT");
  command.add_option("--save-every", r.save_every, "Updates between checkpoints, in addition to those after epochs")
      ->type_name("N");
  command.add_flag("--resume", r.resume, "Continue from the checkpoint, with the same losses as an uninterrupted training");
  command.add_option("--export", c.export_model, "Write the trained model for inference")->type_name("FILE");
  command.add_option("--outputs", r.outputs, "Outputs of the exported model (default: those from which the loss is computed)")
      ->type_name("NAME,…")
      ->delimiter(',')
      .one_word();
  command.add_option("--labels", c.labels, "Write the names of the classes, one per line")->type_name("FILE");
  command.add_option("--report", c.report, "Write a page with curves and figures")->type_name("FILE");
  command.add_flag("--dry-run", r.dry_run, "Read model and data, check everything, print what would be done, and write nothing");
  command.add_flag("--json", r.json, "Print a line of JSON for each batch, epoch and checkpoint");
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
  command->footer(kTrainExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
