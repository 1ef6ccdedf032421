#pragma once
// Quantised models: weights, and the numbers that nodes compute with, in 4, 8 or 16 bits; see docs/quantization.md. In
// libsdx_quantize.so. Names and meanings follow ONNX Runtime's onnxruntime.quantization. All functions may be called from several
// threads.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/export.hpp>
#include <sdx/preprocessing.hpp>
#include <sdx/session.hpp>

namespace sdx {

// As text: "QInt8", "QUInt8", …; the command line also takes "int8", "uint8", …, "float8e4m3fn".
enum class QuantType { qint8, quint8, qint16, quint16, qint4, quint4, qfloat8e4m3fn };
// As text: "QDQ" (QuantizeLinear and DequantizeLinear around float operators), "QOperator" (QLinearConv and its like).
enum class QuantFormat { qdq, qoperator };
// How calibration derives a tensor's range. As text: "MinMax", "Entropy", "Percentile", "Distribution", "MSE".
enum class CalibrationMethod { minmax, entropy, percentile, distribution, mse };

SDX_API std::string_view name(QuantType type) noexcept;
SDX_API std::string_view name(QuantFormat format) noexcept;
SDX_API std::string_view name(CalibrationMethod method) noexcept;
// Ignore case. Throw Error(invalid_argument) with the closest match.
SDX_API QuantType parse_quant_type(std::string_view text);
SDX_API QuantFormat parse_quant_format(std::string_view text);
SDX_API CalibrationMethod parse_calibration_method(std::string_view text);
// The tensor element type.
SDX_API DataType data_type(QuantType type) noexcept;

// Settings of one tensor. Members without a value keep the general setting.
struct TensorQuantSettings {
  std::optional<QuantType> quant_type;
  std::optional<std::int64_t> axis;  // of weights: scales along this axis
  std::optional<bool> symmetric, reduce_range;
  std::vector<float> rmin,
      rmax;                  // one, or one per channel; replace the calibrated range or that of the weights; set both or none
  std::vector<float> scale;  // one, or one per channel; with zero_point, replaces any range
  std::vector<std::int64_t> zero_point;
};

// A second type for the same activation, which some of its readers get: the model quantises, dequantises and quantises again.
struct TensorQuantConversion : TensorQuantSettings {
  std::vector<std::string> recv_nodes;  // these readers; empty: all
};

// Overrides the options for one tensor.
struct TensorQuantOverride : TensorQuantSettings {
  std::optional<TensorQuantConversion> convert;
};

// Which nodes to quantise, by node name; a nameless node goes by the name of its first output. An empty list sets no restriction.
struct QuantSelection {
  std::vector<std::string> op_types_to_quantize;  // "Conv", "MatMul"; empty: all that the mode supports
  std::vector<std::string> nodes_to_quantize;     // only these
  std::vector<std::string> nodes_to_exclude;      // not these
  bool ignore_unknown = false;  // tolerate operators that the mode does not support and names that match no node
};

// ONNX Runtime's extra_options, under their names there.
struct QuantExtraOptions {
  std::optional<bool> activation_symmetric;  // ActivationSymmetric (default: false)
  // ActivationRestrictedAsymmetric: zero points of uint8 activations are 0 or 128 alone.
  bool activation_restricted_asymmetric = false;
  std::optional<bool> weight_symmetric;  // WeightSymmetric (default: true for signed weights)
  bool enable_subgraph = false;          // EnableSubgraph: also nodes in branches and loops (dynamic)
  bool force_quantize_no_input_check =
      false;  // ForceQuantizeNoInputCheck: operators that only move data, whatever produces their input
  std::optional<bool> matmul_const_b_only;  // MatMulConstBOnly (default: dynamic true, static false)
  bool add_qdq_pair_to_weight = false;      // AddQDQPairToWeight: weights stay float before their QuantizeLinear
  std::vector<std::string> op_types_to_exclude_output_quantization;  // OpTypesToExcludeOutputQuantization
  bool dedicated_qdq_pair = false;                                   // DedicatedQDQPair: one DequantizeLinear per consumer
  bool qdq_keep_removable_activations = false;                       // QDQKeepRemovableActivations: Relu and Clip stay
  bool qdq_disable_weight_adjust_for_int32_bias = false;
  std::map<std::string, std::int64_t> qdq_op_type_per_channel_support_to_axis;  // QDQOpTypePerChannelSupportToAxis
  bool use_qdq_contrib_ops = false;  // UseQDQContribOps: com.microsoft operators, which support 16 and 4 bits in older opsets
  std::optional<float> minimum_real_range;                            // MinimumRealRange: smallest range allowed
  bool quantize_bias = true;                                          // QuantizeBias: to int32
  std::map<std::string, TensorQuantOverride> tensor_quant_overrides;  // TensorQuantOverrides, by tensor
  bool calib_tensor_range_symmetric = false;                          // CalibTensorRangeSymmetric
  bool calib_moving_average = false;            // CalibMovingAverage: moving average of the batches' extremes, for minmax
  double calib_moving_average_constant = 0.01;  // CalibMovingAverageConstant
  double calib_percentile = 99.999;             // CalibPercentile
  int calib_num_bins = 2048;                    // of histograms
  int calib_num_quantized_bins = 128;           // of the entropy method
  bool smooth_quant = false;                    // SmoothQuant: move activation outliers into the weights
  double smooth_quant_alpha = 0.5;              // SmoothQuantAlpha: how much of them to move
  bool smooth_quant_folding = true;             // SmoothQuantFolding: fold into the preceding layer where possible
};

// Options common to all quantisation modes.
struct QuantOptions : QuantSelection {
  bool per_channel = false;   // one scale per output channel of weights
  bool reduce_range = false;  // 7-bit weights, for machines without VNNI, where 16-bit sums may overflow
  QuantType weight_type = QuantType::qint8;
  QuantExtraOptions extra;
  // Fold BatchNormalization into the preceding layer, and constant expressions, before quantising.
  bool preprocess = true;
  // Keep the layers that do the most damage in float until the loss (see QuantAccuracy::loss) is at most this. Measures every
  // layer: needs data.
  std::optional<double> max_loss{};
  // Measure the quantised model against the float one on the data: QuantReport::accuracy.
  bool measure_accuracy = false;
  std::vector<std::filesystem::path> custom_ops{};        // custom operator libraries that the model needs
  std::uint64_t external_above = std::uint64_t{1} << 30;  // constants totalling more bytes go into OUTPUT.data
  bool dry_run = false;  // do everything but write: the report's bytes_after is what would be written
};

struct DynamicQuantOptions : QuantOptions {};

struct StaticQuantOptions : QuantOptions {
  QuantFormat quant_format = QuantFormat::qdq;
  QuantType activation_type = QuantType::qint8;
  CalibrationMethod calibrate_method = CalibrationMethod::minmax;
};

// Supplies calibration data to a model, one batch of inputs at a time.
class SDX_API CalibrationDataReader {
 public:
  virtual ~CalibrationDataReader() = default;
  // Returns the next batch's inputs by name; std::nullopt at the end.
  virtual std::optional<NamedValues> get_next() = 0;
  // Starts over: the next get_next() returns the first batch again.
  virtual void rewind() = 0;
};

// Accuracy of one value of the quantised model.
struct TensorAccuracy {
  std::string name, node, op;  // the value in the float model, and the node that produces it ("node 'conv1'", "Conv")
  double signal_to_noise = 0;  // decibels: 20 log10(|x| / |x - y|); infinite if both agree
  double cosine = 0;
  bool quantized = false;  // the node was quantised
};
struct QuantAccuracy {
  std::int64_t samples = 0;             // batches of data measured
  std::vector<TensorAccuracy> outputs;  // of the model
  std::vector<TensorAccuracy> layers;   // values inside, in order of execution
  std::optional<double> top1;           // share of rows whose largest element is at the same position, for outputs of scores
  // The larger of 1 - the smallest cosine of any output, and the share of rows whose largest element differs.
  double loss = 0;
};

// Result of a quantisation.
struct QuantReport {
  struct Kept {
    std::string node, op, why;  // "node 'scores'"
  };
  std::string mode;                       // "dynamic", "static", "weight-only", "float16", "bfloat16"
  std::int64_t nodes = 0, quantized = 0;  // nodes of the source model, and how many of them compute in fewer bits
  std::vector<std::pair<std::string, std::int64_t>> quantized_by_op;
  std::vector<Kept> kept;                           // nodes that the mode supports but that were not quantised
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the files
  std::optional<QuantAccuracy> accuracy;
  std::vector<std::string> warnings;

  // A short summary for people, and a JSON object. `layers`: how many of the worst layers the text lists; JSON has all.
  SDX_API std::string text(std::size_t layers = 10) const;
  SDX_API std::string json() const;
};

// Dynamic quantisation: weights are quantised ahead of time, node inputs when the model runs. Needs no data. Supports Gemm,
// MatMul, LSTM, GRU, Attention, Gather of tables and EmbedLayerNormalization; for Conv, only weights, unless op_types_to_quantize
// names it. Writes the result to `output` atomically. `data` is used only for max_loss and measure_accuracy. Throws Error: all
// errors of reading the model; invalid_argument for unknown names in `options`, types that the mode does not support, and options
// that need data that was not given; io.
SDX_API QuantReport quantize_dynamic(const std::filesystem::path& model, const std::filesystem::path& output,
                                     const DynamicQuantOptions& options = {}, CalibrationDataReader* data = nullptr);

// Static quantisation: weights and activations are quantised, using the activation ranges observed while the float model runs
// over the data. Throws the errors of quantize_dynamic() and of `data`, and Error(invalid_argument) if there is no data.
SDX_API QuantReport quantize_static(const std::filesystem::path& model, const std::filesystem::path& output,
                                    CalibrationDataReader& data, const StaticQuantOptions& options = {});

// The range that calibration found for one value.
struct CalibratedRange {
  double low = 0, high = 0;
  std::optional<double> deviation;  // standard deviation, with CalibrationMethod::distribution
};
using CalibratedRanges = std::map<std::string, CalibratedRange, std::less<>>;

// The first half of quantize_static(): runs the float model over the data. `all`: return the ranges of all float inputs and
// outputs of nodes in options.op_types_to_quantize (empty: all nodes); otherwise only those that quantisation needs.
SDX_API CalibratedRanges calibrate_static(const std::filesystem::path& model, CalibrationDataReader& data,
                                          const StaticQuantOptions& options = {}, bool all = false);
// The second half: values missing from `ranges` stay float. Throws Error(invalid_argument) for options that need data: max_loss,
// measure_accuracy, smooth_quant.
SDX_API QuantReport quantize_calibrated(const std::filesystem::path& model, const std::filesystem::path& output,
                                        const CalibratedRanges& ranges, const StaticQuantOptions& options = {});

// The first step of the other functions: writes the model with types inferred and, if options.preprocess, constants and
// BatchNormalization folded.
SDX_API void preprocess_for_quantizing(const std::filesystem::path& model, const std::filesystem::path& output,
                                       const QuantOptions& options = {});

// Measures `quantized` against `model` (see QuantReport::accuracy) on at most `samples` batches; 0: all. Intermediate values are
// compared if both models have one of the same name.
SDX_API QuantAccuracy compare_quantized(const std::filesystem::path& model, const std::filesystem::path& quantized,
                                        CalibrationDataReader& data, std::int64_t samples = 0);

// float16 or bfloat16 in place of float32, as sdx/convert.hpp does it.
struct HalfOptions {
  DataType dtype = DataType::float16;                     // or bfloat16
  bool keep_io = false;                                   // inputs and outputs stay float32
  std::vector<std::string> keep_ops{};                    // operators that stay float32: "Softmax", "com.microsoft.Attention"
  std::vector<std::string> keep_nodes{};                  // names of nodes that stay float32
  bool measure_accuracy = false;                          // on the data
  std::vector<std::filesystem::path> custom_ops{};        // custom operator libraries that the model needs
  std::uint64_t external_above = std::uint64_t{1} << 30;  // constants totalling more bytes go into OUTPUT.data
  bool dry_run = false;  // do everything but write: the report's bytes_after is what would be written
};
// Writes a model that computes in 16 bits. Its report counts nodes that do so. Throws as quantize_dynamic() does, and
// Error(invalid_argument) if no node can compute in the type.
SDX_API QuantReport convert_to_half(const std::filesystem::path& model, const std::filesystem::path& output,
                                    const HalfOptions& options = {}, CalibrationDataReader* data = nullptr);

struct CalibrationFiles {
  std::int64_t batch = 0;       // rows per batch; 0: as the model fixes it, else 1
  std::int64_t samples = 0;     // maximum number of rows; 0: all
  Preprocessing preprocessing;  // of images
};
// Reads calibration data from files: an .npz with one array per input (rows are samples), a .npy for a model with one input, a
// folder of such files (one batch each), or a folder of images. Throws Error(io | invalid_argument) saying what does not fit the
// model's inputs.
SDX_API std::unique_ptr<CalibrationDataReader> open_calibration_data(const std::filesystem::path& model,
                                                                     const std::filesystem::path& data,
                                                                     const CalibrationFiles& files = {});

}  // namespace sdx
