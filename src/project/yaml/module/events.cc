// yaml-cpp's side of yaml_events.h. Nothing of Sardonyx but that header: it is also a library of its own.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cstring>
#include <exception>
#include <sstream>

#include "project/yaml/yaml_events.h"

namespace sdx {
namespace {

struct Stopped : std::exception {};

class Forwarder : public YAML::EventHandler {
 public:
  explicit Forwarder(const YamlEventRequest& request) : request_(request) {}

  void OnDocumentStart(const YAML::Mark& mark) override { send(YamlEventKind::document_start, mark, 0); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { send(YamlEventKind::null, mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { send(YamlEventKind::alias, mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    send(YamlEventKind::scalar, mark, anchor, tag, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    send(YamlEventKind::list_start, mark, anchor, tag);
  }
  void OnSequenceEnd() override { send(YamlEventKind::list_end, {}, 0); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    send(YamlEventKind::map_start, mark, anchor, tag);
  }
  void OnMapEnd() override { send(YamlEventKind::map_end, {}, 0); }

 private:
  void send(YamlEventKind kind, const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag = "",
            const std::string& text = "") const {
    const bool known = !mark.is_null();
    const YamlEvent event{
        kind, known ? mark.line + 1 : 1, known ? mark.column + 1 : 1, anchor, tag.data(), tag.size(), text.data(), text.size()};
    if (!request_.on_event(request_.context, &event)) throw Stopped();
  }

  const YamlEventRequest& request_;
};

void say(YamlEventRequest& request, const char* what) {
  std::strncpy(request.message, what, sizeof request.message - 1);
  request.message[sizeof request.message - 1] = '\0';
}

YamlOutcome events(YamlEventRequest* request) {
  Forwarder forwarder(*request);
  request->line = request->column = 1;
  try {
    std::istringstream in{std::string(request->text, request->size)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(forwarder)) {
    }
    return YamlOutcome::ok;
  } catch (const Stopped&) {
    return YamlOutcome::stopped;
  } catch (const YAML::Exception& e) {
    if (!e.mark.is_null()) {
      request->line = e.mark.line + 1;
      request->column = e.mark.column + 1;
    }
    say(*request, e.msg.c_str());
  } catch (const std::exception& e) {
    say(*request, e.what());
  }
  return YamlOutcome::syntax;
}

constexpr YamlModule kModule{module_head<YamlModule>(SDX_VERSION), events};

}  // namespace
}  // namespace sdx

extern "C" const sdx::ModuleHead* sdx_yaml_module() { return &sdx::kModule.head; }
