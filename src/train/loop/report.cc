#include "train/loop/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/markup.h"
#include "train/loop/progress.h"
#include "train/loop/report_page.h"

namespace sdx::train::loop {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double v) { return std::isfinite(v) ? fmt::format("{:.2f} %", 100 * v) : "–"; }

std::string table(const std::vector<FitEpoch>& history) {
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>epoch</th><th>loss</th><th>accuracy</th><th>validation loss</th>"
      "<th>validation accuracy</th><th>learning rate</th></tr></thead><tbody>";
  for (const FitEpoch& e : history) {
    out += fmt::format("<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                       e.best ? " class=\"best\"" : "", e.epoch + 1, short_number(e.loss), percent(e.accuracy),
                       short_number(e.validation_loss), percent(e.validation_accuracy),
                       short_number(static_cast<double>(e.learning_rate)));
  }
  return out + "</tbody></table></div>\n";
}

// The data of the plots. It holds no text from elsewhere.
std::string data_json(const Report& r) {
  Json epochs = Json::array();
  for (const FitEpoch& e : r.history) {
    epochs.push_back({{"loss", e.loss},
                      {"accuracy", e.accuracy},
                      {"validation_loss", e.validation_loss},
                      {"validation_accuracy", e.validation_accuracy}});
  }
  return Json{{"epochs", std::move(epochs)},
              {"losses", r.curve.losses},
              {"batches_each", r.curve.batches_each},
              {"batches_per_epoch", r.batches_per_epoch}}
      .dump();
}

}  // namespace

std::string report_html(const Report& r) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>";
  html += markup_text(r.title) + "</title><style>" + kReportStyle + "</style></head><body><main>\n";
  html += "<header><h1>" + markup_text(r.title) + "</h1><button id=\"theme\">Dark</button></header>\n";
  for (const std::string& n : r.notes) html += "<div class=\"note\">" + markup_text(n) + "</div>\n";
  html += "<section class=\"card\"><dl>";
  for (const auto& [name, value] : r.facts) html += "<dt>" + markup_text(name) + "</dt><dd>" + markup_text(value) + "</dd>";
  html +=
      "</dl></section>\n<section class=\"card\"><h2>Loss</h2><div id=\"loss\"></div></section>\n"
      "<section class=\"card\" id=\"accuracies\"><h2>Accuracy</h2><div id=\"accuracy\"></div></section>\n"
      "<section class=\"card\"><h2>Epochs</h2>";
  html += table(r.history) + "</section></main><div id=\"tip\"></div>\n<script type=\"application/json\" id=\"data\">";
  html += data_json(r) + "</script>\n<script>" + kReportScript + "</script></body></html>\n";
  return html;
}

}  // namespace sdx::train::loop
