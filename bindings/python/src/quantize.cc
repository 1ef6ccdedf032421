// The compiled half of sardonyx.quantization.

#include "quantize.h"

#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <sdx/quantize.hpp>
#include <sdx/quantize_weights.hpp>
#include <utility>
#include <vector>

#include "arrays.h"
#include "base/error.h"
#include "entry.h"
#include "quantize/dynamic/dynamic.h"
#include "quantize/fixed/plan.h"
#include "signals.h"

namespace sdx::python {
namespace {

using Setter = std::function<void(PyObject*)>;
using Setters = std::map<std::string, Setter, std::less<>>;

// Passes each entry of a dict that is not None to the function for its name.
void set_all(PyObject* dict, const Setters& setters, const char* what) {
  each_item(dict, [&](const std::string& name, PyObject* value) {
    const auto at = setters.find(name);
    if (at == setters.end()) fail(ErrorCode::invalid_argument, "{} have no '{}'", what, name);
    if (value != Py_None) at->second(value);
  });
}

float to_float(PyObject* o) { return static_cast<float>(to_double(o)); }
QuantType to_type(PyObject* o) { return parse_quant_type(to_text(o)); }

template <class T, class Convert>
Setter into(T& place, const Convert& convert) {
  return [&place, convert](PyObject* value) { place = convert(value); };
}
template <class T, class Convert>
Setter list_into(std::vector<T>& place, const Convert& convert) {
  return [&place, convert](PyObject* value) {
    place.clear();
    to_list(value, [&](PyObject* item) {
      place.emplace_back(convert(item));
      return 0;
    });
  };
}

Setters tensor_setters(TensorQuantSettings& s) {
  return {{"quant_type", into(s.quant_type, to_type)}, {"axis", into(s.axis, to_integer)},
          {"symmetric", into(s.symmetric, to_truth)},  {"reduce_range", into(s.reduce_range, to_truth)},
          {"rmin", list_into(s.rmin, to_float)},       {"rmax", list_into(s.rmax, to_float)},
          {"scale", list_into(s.scale, to_float)},     {"zero_point", list_into(s.zero_point, to_integer)}};
}

TensorQuantConversion to_conversion(PyObject* dict) {
  TensorQuantConversion c;
  Setters setters = tensor_setters(c);
  setters.emplace("recv_nodes", list_into(c.recv_nodes, to_text));
  set_all(dict, setters, "conversions of tensors");
  return c;
}

TensorQuantOverride to_override(PyObject* dict) {
  TensorQuantOverride o;
  Setters setters = tensor_setters(o);
  setters.emplace("convert", into(o.convert, to_conversion));
  set_all(dict, setters, "overrides of tensors");
  return o;
}

Setters extra_setters(QuantExtraOptions& e) {
  return {
      {"ActivationSymmetric", into(e.activation_symmetric, to_truth)},
      {"ActivationRestrictedAsymmetric", into(e.activation_restricted_asymmetric, to_truth)},
      {"WeightSymmetric", into(e.weight_symmetric, to_truth)},
      {"EnableSubgraph", into(e.enable_subgraph, to_truth)},
      {"ForceQuantizeNoInputCheck", into(e.force_quantize_no_input_check, to_truth)},
      {"MatMulConstBOnly", into(e.matmul_const_b_only, to_truth)},
      {"AddQDQPairToWeight", into(e.add_qdq_pair_to_weight, to_truth)},
      {"OpTypesToExcludeOutputQuantization", list_into(e.op_types_to_exclude_output_quantization, to_text)},
      {"DedicatedQDQPair", into(e.dedicated_qdq_pair, to_truth)},
      {"QDQKeepRemovableActivations", into(e.qdq_keep_removable_activations, to_truth)},
      {"QDQDisableWeightAdjustForInt32Bias", into(e.qdq_disable_weight_adjust_for_int32_bias, to_truth)},
      {"QDQOpTypePerChannelSupportToAxis",
       [&e](PyObject* dict) {
         each_item(dict, [&](const std::string& op, PyObject* axis) {
           e.qdq_op_type_per_channel_support_to_axis[op] = to_integer(axis);
         });
       }},
      {"UseQDQContribOps", into(e.use_qdq_contrib_ops, to_truth)},
      {"MinimumRealRange", into(e.minimum_real_range, to_float)},
      {"QuantizeBias", into(e.quantize_bias, to_truth)},
      {"TensorQuantOverrides",
       [&e](PyObject* dict) {
         each_item(dict, [&](const std::string& tensor, PyObject* one) { e.tensor_quant_overrides[tensor] = to_override(one); });
       }},
      {"CalibTensorRangeSymmetric", into(e.calib_tensor_range_symmetric, to_truth)},
      {"CalibMovingAverage", into(e.calib_moving_average, to_truth)},
      {"CalibMovingAverageConstant", into(e.calib_moving_average_constant, to_double)},
      {"CalibPercentile", into(e.calib_percentile, to_double)},
      {"CalibNumBins", into(e.calib_num_bins, to_int)},
      {"CalibNumQuantizedBins", into(e.calib_num_quantized_bins, to_int)},
      {"SmoothQuant", into(e.smooth_quant, to_truth)},
      {"SmoothQuantAlpha", into(e.smooth_quant_alpha, to_double)},
      {"SmoothQuantFolding", into(e.smooth_quant_folding, to_truth)},
  };
}

Setters common_setters(QuantOptions& o) {
  return {
      {"op_types_to_quantize", list_into(o.op_types_to_quantize, to_text)},
      {"nodes_to_quantize", list_into(o.nodes_to_quantize, to_text)},
      {"nodes_to_exclude", list_into(o.nodes_to_exclude, to_text)},
      {"ignore_unknown", into(o.ignore_unknown, to_truth)},
      {"per_channel", into(o.per_channel, to_truth)},
      {"reduce_range", into(o.reduce_range, to_truth)},
      {"weight_type", into(o.weight_type, to_type)},
      {"preprocess", into(o.preprocess, to_truth)},
      {"max_loss", into(o.max_loss, to_double)},
      {"measure_accuracy", into(o.measure_accuracy, to_truth)},
      {"custom_ops", list_into(o.custom_ops, to_text)},
      {"external_above",
       [&o](PyObject* v) { o.external_above = static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_integer(v))); }},
      {"extra", [&o](PyObject* dict) { set_all(dict, extra_setters(o.extra), "extra_options"); }},
  };
}

StaticQuantOptions to_static(PyObject* dict) {
  StaticQuantOptions o;
  Setters setters = common_setters(o);
  setters.insert({
      {"quant_format", [&o](PyObject* v) { o.quant_format = parse_quant_format(to_text(v)); }},
      {"activation_type", into(o.activation_type, to_type)},
      {"calibrate_method", [&o](PyObject* v) { o.calibrate_method = parse_calibration_method(to_text(v)); }},
  });
  set_all(dict, setters, "options of static quantisation");
  return o;
}

// Holds the GIL for a while, in a thread that lets others go on (Unlocked).
class Locked {
 public:
  Locked() : state_(or_stay([] { return PyGILState_Ensure(); })) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

Tensor copy_of(const Tensor& t) {
  Tensor out(t.dtype(), t.shape());
  std::memcpy(out.mutable_data(), t.data(), t.bytes());
  return out;
}

// A Python reader: an object with get_next(), which gives dicts of arrays and then None. It cannot go back, so batches are kept
// where the data are needed more than once.
class PythonReader : public CalibrationDataReader {
 public:
  PythonReader(PyObject* reader, bool keep) : next_(Object::of(reader).attribute("get_next")), keep_(keep) {}

  std::optional<NamedValues> get_next() override {
    if (at_ < kept_.size()) return kept_[at_++];
    if (ended_) return std::nullopt;
    std::optional<NamedValues> batch = read();
    if (!batch) {
      ended_ = true;
      return std::nullopt;
    }
    ++at_;
    if (keep_) kept_.push_back(*batch);
    return batch;
  }
  void rewind() override { at_ = 0; }

 private:
  std::optional<NamedValues> read() {
    const Locked locked;
    const Object given = next_.call();
    if (given.is_none()) return std::nullopt;
    if (PyDict_Check(given.get()) == 0) {
      fail(ErrorCode::invalid_argument, "get_next() of calibration data gives dicts of arrays, and None at the end");
    }
    Buffers buffers;
    NamedValues out;
    each_item(given.get(), [&](const std::string& name, PyObject* array) {
      Value v = to_value(array, Expected{name.c_str()}, buffers);
      if (v.is_tensor() && v.tensor().dtype() != DataType::string) v = Value(copy_of(v.tensor()));
      out.add(name, std::move(v));
    });
    return out;
  }

  Object next_;
  bool keep_ = false, ended_ = false;
  std::deque<NamedValues> kept_;
  std::size_t at_ = 0;
};

std::optional<PythonReader> reader_or_none(PyObject* reader) {
  if (reader == Py_None) return std::nullopt;
  return std::optional<PythonReader>(std::in_place, reader, true);
}

// dynamic(model, output, options, reader or None): the report as JSON.
Object dynamic(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  DynamicQuantOptions options;
  set_all(argument(arguments, 2), common_setters(options), "options of dynamic quantisation");
  std::optional<PythonReader> reader = reader_or_none(argument(arguments, 3));
  return text(interruptible([&] { return quantize_dynamic(model, output, options, reader ? &*reader : nullptr).json(); }));
}

// half(model, output, options, reader or None): the report as JSON.
Object half(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  HalfOptions o;
  set_all(argument(arguments, 2),
          {{"dtype", [&o](PyObject* v) { o.dtype = parse_data_type(to_text(v)); }},
           {"keep_io", into(o.keep_io, to_truth)},
           {"keep_ops", list_into(o.keep_ops, to_text)},
           {"keep_nodes", list_into(o.keep_nodes, to_text)},
           {"measure_accuracy", into(o.measure_accuracy, to_truth)},
           {"custom_ops", list_into(o.custom_ops, to_text)}},
          "options of 16 bits");
  std::optional<PythonReader> reader = reader_or_none(argument(arguments, 3));
  return text(interruptible([&] { return convert_to_half(model, output, o, reader ? &*reader : nullptr).json(); }));
}

// operators(): those that dynamic and static quantisation know.
Object operators(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 0);
  return tuple(texts(quantize::dynamic_operators()), texts(quantize::static_operators()));
}

// calibrated(model, output, reader, options)
Object calibrated(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  const StaticQuantOptions options = to_static(argument(arguments, 3));
  const bool twice = options.calibrate_method != CalibrationMethod::minmax || options.max_loss || options.measure_accuracy ||
                     options.extra.smooth_quant;
  PythonReader reader(argument(arguments, 2), twice);
  return text(interruptible([&] { return quantize_static(model, output, reader, options).json(); }));
}

// ranges(model, reader, options, all): {name: (low, high, deviation or None)}
Object ranges(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0));
  const StaticQuantOptions options = to_static(argument(arguments, 2));
  const bool all = to_truth(argument(arguments, 3));
  PythonReader reader(argument(arguments, 1), options.calibrate_method != CalibrationMethod::minmax);
  const CalibratedRanges found = interruptible([&] { return calibrate_static(model, reader, options, all); });
  Object out = new_dict();
  for (const auto& [name, r] : found) {
    set(out, name.c_str(), tuple(number(r.low), number(r.high), r.deviation ? number(*r.deviation) : Object::none()));
  }
  return out;
}

// with_ranges(model, output, ranges, options)
Object with_ranges(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  CalibratedRanges given;
  each_item(argument(arguments, 2), [&](const std::string& name, PyObject* range) {
    expect_arguments(range, 3);
    CalibratedRange r{to_double(argument(range, 0)), to_double(argument(range, 1)), {}};
    if (argument(range, 2) != Py_None) r.deviation = to_double(argument(range, 2));
    given[name] = r;
  });
  const StaticQuantOptions options = to_static(argument(arguments, 3));
  return text(interruptible([&] { return quantize_calibrated(model, output, given, options).json(); }));
}

// preprocess(model, output, options)
Object preprocess(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  QuantOptions options;
  set_all(argument(arguments, 2), common_setters(options), "options of preprocessing");
  interruptible([&] {
    preprocess_for_quantizing(model, output, options);
    return 0;
  });
  return Object::none();
}

// compare(model, quantized, reader, samples)
Object compare(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), quantized = to_text(argument(arguments, 1));
  PythonReader reader(argument(arguments, 2), false);
  const std::int64_t samples = to_integer(argument(arguments, 3));
  QuantReport report;
  report.accuracy = interruptible([&] { return compare_quantized(model, quantized, reader, samples); });
  return text(report.json());
}

Setters format_setters(WeightFormat& f) {
  return {
      {"bits", into(f.bits, to_int)}, {"block_size", into(f.block_size, to_integer)}, {"symmetric", into(f.symmetric, to_truth)}};
}

WeightOnlyOptions to_weight_only(PyObject* dict) {
  WeightOnlyOptions o;
  Setters setters = format_setters(o.format);
  setters.insert({
      {"method", [&o](PyObject* v) { o.method = weight_method_named(to_text(v)); }},
      {"qdq", [&o](PyObject* v) { o.form = to_truth(v) ? WeightForm::qdq : WeightForm::qoperator; }},
      {"accuracy_level", into(o.accuracy_level, to_int)},
      {"ops", list_into(o.ops, to_text)},
      {"nodes", list_into(o.nodes, to_text)},
      {"exclude", list_into(o.exclude, to_text)},
      {"node_formats",
       [&o](PyObject* formats) {
         each_item(formats, [&](const std::string& node, PyObject* settings) {
           WeightFormat f = o.format;
           set_all(settings, format_setters(f), "formats of weights");
           o.node_formats.emplace_back(node, f);
         });
       }},
      {"damp", into(o.damp, to_double)},
      {"act_order", into(o.act_order, to_truth)},
      {"search_scales", into(o.search_scales, to_truth)},
      {"max_loss", into(o.max_loss, to_double)},
      {"measure_accuracy", into(o.measure_accuracy, to_truth)},
  });
  set_all(dict, setters, "options of weights in few bits");
  return o;
}

// weights(model, output, options, reader or None): ([(node, op, bits, k, n, block_size, error)], [(node, op, why)], warnings, the
// summary as JSON)
Object weights(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const std::string model = to_text(argument(arguments, 0)), output = to_text(argument(arguments, 1));
  const WeightOnlyOptions options = to_weight_only(argument(arguments, 2));
  std::optional<PythonReader> reader = reader_or_none(argument(arguments, 3));
  const WeightOnlyReport r = interruptible([&] { return quantize_weights(model, output, options, reader ? &*reader : nullptr); });
  const auto node = [](const WeightOnlyReport::Node& n) {
    return tuple(text(n.name), text(n.op), whole(n.bits), number(n.k), number(n.n), number(n.block_size), number(n.error));
  };
  const auto kept = [](const WeightOnlyReport::Kept& k) { return tuple(text(k.node), text(k.op), text(k.why)); };
  return tuple(list_of(r.quantized, node), list_of(r.kept, kept), texts(r.warnings), text(r.summary().json()));
}

PyMethodDef functions[] = {
    {"dynamic", &entry<dynamic>, METH_VARARGS, "dynamic($module, model, output, options, reader, /)\n--\n\n"},
    {"half", &entry<half>, METH_VARARGS, "half($module, model, output, options, reader, /)\n--\n\n"},
    {"operators", &entry<operators>, METH_VARARGS, "operators($module, /)\n--\n\n"},
    {"calibrated", &entry<calibrated>, METH_VARARGS, "calibrated($module, model, output, reader, options, /)\n--\n\n"},
    {"ranges", &entry<ranges>, METH_VARARGS, "ranges($module, model, reader, options, all, /)\n--\n\n"},
    {"with_ranges", &entry<with_ranges>, METH_VARARGS, "with_ranges($module, model, output, ranges, options, /)\n--\n\n"},
    {"preprocess", &entry<preprocess>, METH_VARARGS, "preprocess($module, model, output, options, /)\n--\n\n"},
    {"compare", &entry<compare>, METH_VARARGS, "compare($module, model, quantized, reader, samples, /)\n--\n\n"},
    {"weights", &entry<weights>, METH_VARARGS, "weights($module, model, output, options, reader, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Object make_quantize(PyObject*, PyObject*) { return new_module<functions>("sardonyx._sardonyx.quantize"); }

}  // namespace sdx::python
