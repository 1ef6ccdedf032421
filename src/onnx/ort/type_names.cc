#include "onnx/ort/type_names.h"

#include <charconv>

#include "ops/op.h"

namespace sdx {
namespace {

// Differences between the names in ONNX Runtime's schemas and in our definitions: from which version on, by input > by output.
// Types that vary have the name of their variable, others the name of the input or output.
constexpr std::string_view kNames = R"(
:BatchNormalization 1 T T T T T > T T T T T
:BatchNormalization 14 T T T U U > T U U
:BatchNormalization 15 T T1 T1 T2 T2 > T T2 T2
:ConcatFromSequence 11 S > T
:ConvInteger 10 T1 T2 T1 T2 > T3
:DequantizeLinear 10 T x_scale T > y
:DequantizeLinear 19 T1 T2 T1 > T2
:DequantizeLinear 23 T1 T2 T1 > T3
:Dropout 1 T > T T
:Dropout 10 T > T T1
:Dropout 12 T T1 T2 > T T2
:GRU 1 T T T T T1 T > T T
:Identity 1 T > T
:Identity 14 V > V
:If 1 B > V
:LSTM 1 T T T T T1 T T T > T T T
:Loop 1 I B V > V
:MatMulInteger 10 T1 T2 T1 T2 > T3
:MaxPool 1 T > T
:MaxPool 8 T > T I
:Optional 15 V > O
:OptionalGetElement 15 O > V
:OptionalHasElement 15 O > B
:Pad 1 T > T
:Pad 11 T pads T > T
:Pad 18 T pads T Tind > T
:Pow 1 T T > T
:Pow 12 T T1 > T
:QLinearConv 10 T1 x_scale T1 T2 w_scale T2 y_scale T3 T4 > T3
:QLinearMatMul 10 T1 a_scale T1 T2 b_scale T2 y_scale T3 > T3
:QLinearMatMul 21 T1 TS T1 T2 TS T2 TS T3 > T3
:QuantizeLinear 10 T1 y_scale T2 > T2
:QuantizeLinear 19 T1 T1 T2 > T2
:QuantizeLinear 23 T1 T2 T3 > T3
:RNN 1 T T T T T1 T > T T
:Resize 10 T scales > T
:Resize 11 T1 T2 scales sizes > T1
:Scan 8 I V > V
:Scan 9 V > V
:ScatterND 11 T indices T > T
:SequenceAt 11 S I > T
:SequenceConstruct 11 T > S
:SequenceEmpty 11 > S
:SequenceErase 11 S I > S
:SequenceInsert 11 S T I > S
:SequenceLength 11 S > I
:SequenceMap 17 S V > S
:SplitToSequence 11 T I > S
:Tile 1 T T T > T
:Tile 6 T T1 > T
ai.onnx.ml:CastMap 1 T1 > T2
ai.onnx.ml:CategoryMapper 1 T1 > T2
ai.onnx.ml:DictVectorizer 1 T1 > T2
ai.onnx.ml:FeatureVectorizer 1 T1 > Y
ai.onnx.ml:LabelEncoder 1 T1 > T2
ai.onnx.ml:LinearClassifier 1 T1 > T2 Z
ai.onnx.ml:OneHotEncoder 1 T > Y
ai.onnx.ml:SVMClassifier 1 T1 > T2 Z
ai.onnx.ml:TreeEnsembleClassifier 1 T1 > T2 Z
ai.onnx.ml:ZipMap 1 X > T
com.microsoft:BeamSearch 1 F I I I I T T M M I I I > I T T
com.microsoft:BiasDropout 1 T T T T1 T2 > T T2
com.microsoft:CausalConvWithState 1 T T T T > T T T
com.microsoft:DequantizeLinear 1 T1 T2 T1 > T2
com.microsoft:DynamicQuantizeLSTM 1 T T2 T2 T T1 T T T T T2 T T2 > T T T
com.microsoft:EmbedLayerNormalization 1 T1 T1 T T T T T T1 T1 > T T1 T
com.microsoft:GatedAdd 1 T T T T > T
com.microsoft:GreedySearch 1 I I I T I I I > I
com.microsoft:GridSample 1 T1 T1 > T2
com.microsoft:GroupQueryAttention 1 T T T T_CACHE T_CACHE M M T T position_ids T T T_KV_SCALE T_KV_SCALE T T M > T T_CACHE T_CACHE T
com.microsoft:MatMulInteger16 1 T1 T2 > T3
com.microsoft:MulInteger 1 T T T T > T1
com.microsoft:Pad 1 T pads T > T
com.microsoft:QAttention 1 T1 T2 T3 T3 T3 T4 T1 T2 T3 > T3 T3
com.microsoft:QGemm 1 TA T TA TB T TB TC T TYZ > TY
com.microsoft:QLinearConcat 1 TF T8 TV > T8
com.microsoft:QLinearConv 1 T1 x_scale T1 T2 w_scale T2 y_scale T3 T4 > T3
com.microsoft:QLinearWhere 1 B T TF T T TF T TF T > T
com.microsoft:QuantizeLinear 1 T1 T1 T2 > T2
com.microsoft:Sampling 1 I I I T I I I I I > I T
com.microsoft:WhisperBeamSearch 1 F I I I I T T M M I I I I I T > I T T V T
)";

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end != at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<std::string> names(const std::vector<ops::Formal>& formals) {
  std::vector<std::string> out;
  for (const ops::Formal& f : formals) out.push_back(f.type_var.empty() ? f.name : f.type_var);
  return out;
}

}  // namespace

TypeNames type_names(const ops::OpDef& def, int since) {
  TypeNames found{names(def.inputs), names(def.outputs)};
  const std::string key = "\n" + def.domain + ":" + def.name + " ";
  for (std::size_t at = kNames.find(key); at != std::string_view::npos; at = kNames.find(key, at + 1)) {
    const std::string_view line = kNames.substr(at + key.size(), kNames.find('\n', at + 1) - at - key.size());
    int version = 0;
    const char* const rest = std::from_chars(line.data(), line.data() + line.size(), version).ptr;
    if (version > since) break;  // the list goes upwards
    const std::string_view places = line.substr(static_cast<std::size_t>(rest - line.data()));
    const std::size_t mark = places.find('>');
    found = {words(places.substr(0, mark)), words(places.substr(mark + 1))};
  }
  return found;
}

}  // namespace sdx
