// Reports for people and programs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sdx/quantize.hpp>

#include "base/quantity.h"
#include "base/text/json_text.h"

namespace sdx {
namespace {

std::string decibels(double v) { return std::isfinite(v) ? fmt::format("{:.1f} dB", v) : v > 0 ? "exact" : "lost"; }

std::string tensors_json(const std::vector<TensorAccuracy>& list) {
  std::string out = "[";
  for (const TensorAccuracy& t : list) {
    out += fmt::format("{}{{\"name\":{},\"node\":{},\"op\":{},\"signal_to_noise_db\":{},\"cosine\":{},\"quantized\":{}}}",
                       out.size() > 1 ? "," : "", json_string(t.name), json_string(t.node), json_string(t.op),
                       json_number(t.signal_to_noise, 6), json_number(t.cosine, 6), t.quantized);
  }
  return out + "]";
}

std::string accuracy_text(const QuantAccuracy& a, std::size_t layers) {
  std::string out = fmt::format("accuracy on {} batch{}: loss {:.4g}", a.samples, a.samples == 1 ? "" : "es", a.loss);
  if (a.top1) out += fmt::format(", the same largest element in {:.2f} % of rows", *a.top1 * 100);
  out += "\n";
  for (const TensorAccuracy& t : a.outputs) {
    out += fmt::format("  output {}: cosine {:.6f}, {}\n", t.name, t.cosine, decibels(t.signal_to_noise));
  }
  std::vector<TensorAccuracy> worst = a.layers;
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& x, const auto& y) { return x.signal_to_noise < y.signal_to_noise; });
  if (worst.size() > layers) worst.resize(layers);
  if (!worst.empty()) out += "  worst values inside:\n";
  for (const TensorAccuracy& t : worst) {
    out += fmt::format("    {} ({}, {}{}): {}, cosine {:.6f}\n", t.name, t.node, t.op, t.quantized ? "" : ", float",
                       decibels(t.signal_to_noise), t.cosine);
  }
  return out;
}

}  // namespace

std::string QuantReport::text(std::size_t layers) const {
  std::string ops;
  for (const auto& [op, count] : quantized_by_op) ops += fmt::format("{}{} {}", ops.empty() ? "" : ", ", count, op);
  std::string out = fmt::format("{} of {} nodes quantised ({}): {}\n", quantized, nodes, mode, ops.empty() ? "none" : ops);
  if (bytes_after > 0) {
    out += fmt::format("{} instead of {}, {:.0f} %\n", size_text(static_cast<double>(bytes_after)),
                       size_text(static_cast<double>(bytes_before)),
                       bytes_before == 0 ? 100.0 : 100.0 * static_cast<double>(bytes_after) / static_cast<double>(bytes_before));
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const Kept& k : kept) {
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == k.why; });
    if (at == reasons.end()) at = reasons.insert(at, {k.why, {}});
    at->second.push_back(fmt::format("{} ({})", k.node, k.op));
  }
  for (const auto& [why, nodes_of] : reasons) {
    out += fmt::format("  {} {}, {}", nodes_of.size(), nodes_of.size() == 1 ? "stays as it is" : "stay as they are",
                       nodes_of.front());
    if (nodes_of.size() > 1) out += nodes_of.size() == 2 ? ", " + nodes_of[1] : fmt::format(" and {} more", nodes_of.size() - 1);
    out += ": " + why + "\n";
  }
  if (accuracy) out += accuracy_text(*accuracy, layers);
  return out;
}

std::string QuantReport::json() const {
  std::string ops, left;
  for (const auto& [op, count] : quantized_by_op) ops += fmt::format("{}{}:{}", ops.empty() ? "" : ",", json_string(op), count);
  for (const Kept& k : kept) {
    left += fmt::format("{}{{\"node\":{},\"op\":{},\"why\":{}}}", left.empty() ? "" : ",", json_string(k.node), json_string(k.op),
                        json_string(k.why));
  }
  std::string measured = "null";
  if (accuracy) {
    measured = fmt::format("{{\"batches\":{},\"loss\":{},\"top1\":{},\"outputs\":{},\"layers\":{}}}", accuracy->samples,
                           json_number(accuracy->loss, 6), accuracy->top1 ? json_number(*accuracy->top1, 6) : "null",
                           tensors_json(accuracy->outputs), tensors_json(accuracy->layers));
  }
  return fmt::format(
      "{{\"mode\":{},\"nodes\":{},\"quantized\":{},\"quantized_by_op\":{{{}}},\"kept\":[{}],\"bytes_before\":{},\"bytes_after\":{"
      "},"
      "\"accuracy\":{},\"warnings\":{}}}\n",
      json_string(mode), nodes, quantized, ops, left, bytes_before, bytes_after, measured, json_list(warnings));
}

}  // namespace sdx
