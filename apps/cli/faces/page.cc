// sdx faces page

#include <array>
#include <memory>
#include <sdx/error.hpp>

#include "base/system/interrupt.h"
#include "cli/faces/faces.h"
#include "cli/faces/flags.h"
#include "vision/batch/tools.h"
#include "vision/page/module_api.h"

namespace sdx::cli {
namespace {

using faces::page::Module;
using faces::page::ModuleOptions;

constexpr const char* kPageExamples =
    "Examples:\n"
    "  sdx faces page\n"
    "  sdx faces page -m yunet.onnx --port 8090\n"
    "Only this machine can open the page; its address contains a secret. Pictures stay in memory. Ctrl-C ends the server.\n";

struct PageCommand {
  vision::Request request;
  SessionFlags session;
  int port = 0;
};

int serve(PageCommand& c) {
  vision::Request detect = c.request;
  detect.paths = {"picture"};
  check_request(load_module<vision::Tools>().check, detect);
  find_model(c.session, c.request);
  const Module& module = load_module<Module>();
  const Interrupt interrupt;
  ModuleOptions options;
  options.request = &c.request;
  options.port = static_cast<std::uint16_t>(c.port);
  options.stopped = [](void*) { return Interrupt::requested(); };
  options.listening = [](void*, const char* url) { say(std::string("open ") + url); };
  options.warning = [](void*, const char* text) { note(std::string("warning: ") + text); };
  std::array<char, 2000> error{};
  if (!module.serve(&options, error.data(), error.size())) throw Error(ErrorCode::runtime_failure, error.data());
  return kServed;
}

}  // namespace

void add_faces_page(const Command& faces, Action& action) {
  const Command command = faces.add_subcommand("page", "Crop faces by hand on a web page");
  const auto c = std::make_shared<PageCommand>();
  add_detector_flags(command, c->session, c->request);
  command.remove_option("--json");
  command.add_option("--port", c->port, "Port on 127.0.0.1 (0: a free one)")->range(0, 65535)->type_name("N");
  command.footer(kPageExamples);
  command.callback([c, &action] { action = [c] { return serve(*c); }; });
}

}  // namespace sdx::cli
