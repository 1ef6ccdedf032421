#include "cli/values/postprocess.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/values/outputs.h"
#include "project/process.h"

namespace sdx::cli {
namespace {

bool is_scores(const NamedValue& item) { return item.value.is_tensor() && is_floating(item.value.tensor().dtype()); }

std::string class_text(const project::RankedClass& c, int place, bool rows) {
  return fmt::format("{}{:3d}. {:10.6f}  {}\n", rows ? fmt::format("[{}] ", c.row) : "", place, c.score,
                     c.label.empty() ? "class " + std::to_string(c.index) : c.label);
}

std::string class_json(const std::string& output, const project::RankedClass& c, bool rows) {
  return fmt::format("{{\"output\":{},{}\"index\":{},\"score\":{},\"label\":{}}}", json_string(output),
                     rows ? fmt::format("\"row\":{},", c.row) : "", c.index, json_number(c.score), json_or_null(c.label));
}

// More than one sample's scores.
bool several_rows(const Tensor& t, int axis) {
  if (t.rank() == 0) return false;
  return t.dim(project::class_axis(t.shape(), axis)) != t.size();
}

}  // namespace

void PostFlags::add_to(const Command& command) {
  command.add_option("--labels", labels, "File with one class name per line; show the best classes")->type_name("FILE");
  command.add_option("--top-k", top, "Number of classes to show (5)")->range(1, 100000)->type_name("K");
  command.add_flag("--softmax", softmax, "Convert scores to probabilities first");
}

Postprocessor::Postprocessor(const PostFlags& flags, const ProjectConfig* project) : flags_(flags), project_(project) {
  if (!flags.labels.empty()) typed_.labels = read_labels(flags.labels);
  typed_.top_k = flags.top;
}

// Null where the project says nothing of the output.
const Postprocessing* Postprocessor::of(const std::string& output, std::size_t outputs) const {
  if (project_ == nullptr) return nullptr;
  for (const ProjectOutput& o : project_->outputs) {
    const bool only = outputs == 1 && project_->outputs.size() == 1;  // whatever it is called
    if (o.name == output || only) return &o.postprocessing;
  }
  return nullptr;
}

Shown Postprocessor::operator()(NamedValues outputs) const {
  Shown shown;
  bool first = true;  // of the outputs with scores
  bool any = false;
  std::string items;
  for (NamedValue& item : outputs) {
    Postprocessing p;
    if (const Postprocessing* own = of(item.name, outputs.size())) {
      p = *own;
    } else if (project_ != nullptr && first && is_scores(item)) {
      p = project_->postprocessing;
    }
    const bool typed = flags_.any() && first && is_scores(item);
    first = first && !is_scores(item);
    if (p.activation != Activation::none && !item.value.is_tensor()) {
      fail(ErrorCode::invalid_argument, "output '{}' is {}: postprocessing needs a tensor", item.name, item.value.type_string());
    }
    if (p.activation != Activation::none) item.value = project::activated(item.value.tensor(), p);
    if (!typed && !p.ranks()) continue;
    if (!item.value.is_tensor()) fail(ErrorCode::invalid_argument, "output '{}' has no classes", item.name);
    Tensor scores = item.value.tensor();
    if (typed) {
      if (!flags_.labels.empty()) p.labels = typed_.labels;
      if (flags_.top > 0) p.top_k = flags_.top;
      if (flags_.softmax && p.activation == Activation::none) {
        p.activation = Activation::softmax;
        scores = project::activated(scores, p);
      }
    }
    any = true;
    if (!p.labels.empty() && scores.rank() > 0) {
      const auto classes = static_cast<std::size_t>(scores.dim(project::class_axis(scores.shape(), p.axis)));
      if (classes != p.labels.size()) {
        note(fmt::format("warning: {} for the {} of output '{}'", counted(static_cast<std::int64_t>(p.labels.size()), "label"),
                         classes == 1 ? "1 class" : fmt::format("{} classes", classes), item.name));
      }
    }
    const bool rows = several_rows(scores, p.axis);
    int place = 0;
    std::int64_t row = 0;
    for (const project::RankedClass& c : project::ranked(scores, p)) {
      place = c.row == row ? place + 1 : 1;
      row = c.row;
      shown.text += class_text(c, place, rows);
      items += (items.empty() ? "" : ",") + class_json(item.name, c, rows);
    }
  }
  if (flags_.any() && !any) {
    fail(ErrorCode::invalid_argument, "--top-k needs an output of floating-point numbers; this model has none");
  }
  if (any) {
    shown.json = ",\"top\":[" + items + "]";
    if (shown.text.empty()) shown.text = "no class reaches the threshold\n";
  }
  shown.outputs = std::move(outputs);
  return shown;
}

}  // namespace sdx::cli
