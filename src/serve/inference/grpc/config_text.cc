#include "config_text.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include "base/error.h"
#include "model_config.pb.h"

namespace sdx::serve {
namespace {

class Messages : public google::protobuf::io::ErrorCollector {
 public:
  explicit Messages(std::vector<std::string>& ignored) : ignored_(ignored) {}
  // Protobuf 22 renamed the functions and what they take.
#if GOOGLE_PROTOBUF_VERSION < 4022000
  using Message = const std::string&;
  void AddError(int line, google::protobuf::io::ColumnNumber column, Message message) override { error(line, column, message); }
  void AddWarning(int line, google::protobuf::io::ColumnNumber /*column*/, Message message) override { warning(line, message); }
#else
  using Message = absl::string_view;
  void RecordError(int line, google::protobuf::io::ColumnNumber column, Message message) override {
    error(line, column, message);
  }
  void RecordWarning(int line, google::protobuf::io::ColumnNumber /*column*/, Message message) override {
    warning(line, message);
  }
#endif
  const std::string& error() const { return error_; }

 private:
  void error(int line, int column, Message message) {
    if (error_.empty()) error_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, std::string_view(message));
  }
  void warning(int line, Message message) { ignored_.push_back(fmt::format("line {}: {}", line + 1, std::string_view(message))); }

  std::vector<std::string>& ignored_;
  std::string error_;
};

}  // namespace

std::string read_config_text(std::string_view text, std::vector<std::string>& ignored) {
  Messages messages(ignored);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&messages);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(32);
  inference::ModelConfig config;
  if (!parser.ParseFromString(std::string(text), &config)) {
    fail(ErrorCode::invalid_argument, "config.pbtxt: {}", messages.error());
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(config, &json, options);
  if (!status.ok()) fail(ErrorCode::invalid_argument, "config.pbtxt: {}", std::string(status.message()));
  return json;
}

}  // namespace sdx::serve
