#include "config_text.h"

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
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (error_.empty()) error_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + message;
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber /*column*/, const std::string& message) override {
    ignored_.push_back("line " + std::to_string(line + 1) + ": " + message);
  }
  const std::string& error() const { return error_; }

 private:
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
