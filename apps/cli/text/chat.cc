// sdx chat

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/processes/signals.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "cli/text/generation_flags.h"
#include "cli/text/line_editor.h"
#include "tensor/json.h"

namespace sdx::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kChatExamples =
    "Examples:\n"
    "  sdx chat SmolLM2-135M-Instruct.Q4_1.gguf --system \"You are brief.\"\n"
    "  sdx chat model/ --messages question.json            # one answer\n"
    "  sdx chat model/ --messages question.json --print-prompt\n"
    "Messages are a JSON list of {\"role\", \"content\"}. Without --messages, each line is a question; /help lists the "
    "commands.\n"
    "Ctrl-C ends the answer, Ctrl-D the program. Settings without a flag are those that the model's files recommend.\n";
constexpr const char* kHelp =
    "Each line is a question. A line that ends in \\ continues on the next; lines between \"\"\" and \"\"\" form one question.\n"
    "/system TEXT   set the system message from here on; without TEXT: remove it\n"
    "/reset         forget the conversation\n"
    "/save FILE     save the conversation as JSON\n"
    "/load FILE     continue a saved conversation\n"
    "/stats         show tokens and speed of the last answer\n"
    "/result TEXT   give the result of a function call; the model continues when all calls have one\n"
    "/exit          exit, like Ctrl-D\n"
    "Ctrl-C ends the answer.\n";

struct ChatCommand {
  GenerationFlags flags;
  std::string system, messages_file, tools_file, tools;
  bool print_prompt = false, control_tokens = false;
  Command command;

  std::unique_ptr<text::OpenModel> model;
  GenerationSettings settings;
  Json messages = Json::array();
  std::string last_stats;
  bool failed = false;

  int run();

 private:
  ChatInput input() const;
  void answer();
  void ask(Json message, bool answered);
  void give_result(const std::string& text);
  void set_system(const std::string& text);
  void load(const std::string& path);
  bool obey(const std::string& line);
  void converse();
};

// A call is a line: the function's name and its arguments.
void show(const std::vector<AnswerEvent>& events) {
  for (const AnswerEvent& e : events) {
    if (e.kind == AnswerEvent::Kind::call_begin) print(fmt::format("{}{} ", e.index > 0 ? "\n" : "", e.name));
    if (e.kind == AnswerEvent::Kind::call_end && !e.complete) print(" (unfinished)");
    print_exact(e.text);
  }
}

// Formats an answer as templates expect it: the arguments of a complete call are an object.
Json message_of(const ParsedAnswer& answer) {
  Json message{{"role", "assistant"}, {"content", answer.content}};
  if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
  for (const ToolCall& call : answer.calls) {
    const Json arguments = call.complete ? parse_json(call.arguments, "arguments") : Json(call.arguments);
    message["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", arguments}}}});
  }
  return message;
}

ChatInput ChatCommand::input() const {
  ChatInput out;
  out.messages = dump_json(messages);
  out.tools = tools;
  out.add_generation_prompt = true;
  return out;
}

void ChatCommand::answer() {
  const PlainPrompt prompt = model->render(input(), control_tokens);
  forget_break();
  GenerationSettings with = settings;
  const std::unique_ptr<text::AnswerReader> reader = tools.empty() ? nullptr : model->read_answer(tools, prompt.text, with);
  const auto stream = [&](const GeneratedToken& token) {
    if (token.text.empty()) return !break_seen();
    if (reader) {
      show(reader->add(token.text));
    } else {
      print_exact(token.text);
    }
    flush_output();
    return !break_seen();
  };
  std::int64_t cached = 0;
  // The template writes the special tokens itself.
  const Generation g = model->generate(prompt, with, stream, cached);
  if (reader) show(reader->finish());
  print("\n");
  flush_output();
  messages.push_back(reader ? message_of(reader->answer()) : Json{{"role", "assistant"}, {"content", g.choices.at(0).text}});
  last_stats = fmt::format(
      "prompt: {} tokens, {} of them from before; first token after {:.0f} ms; answer: {} tokens, {:.1f} a second; {}",
      g.prompt_tokens, cached, g.first_token_ms, g.completion_tokens, g.tokens_per_s, g.choices.at(0).finish_reason);
}

// A message that fails leaves the conversation as it was.
void ChatCommand::ask(Json message, bool answered) {
  const std::size_t before = messages.size();
  messages.push_back(std::move(message));
  if (!answered) return;
  try {
    answer();
  } catch (const Error& e) {
    messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(before), messages.end());
    note(fmt::format("error: {}", e.what()));
    failed = true;
  }
}

// Takes `text` as the result of the first call that has none yet.
void ChatCommand::give_result(const std::string& text) {
  std::size_t results = 0;
  while (results < messages.size() && messages[messages.size() - 1 - results].value("role", "") == "tool") ++results;
  const Json* calls = nullptr;
  if (results < messages.size()) {
    const Json& last = messages[messages.size() - 1 - results];
    if (last.contains("tool_calls") && last["tool_calls"].is_array()) calls = &last["tool_calls"];
  }
  if (calls == nullptr || results >= calls->size()) return say("the model has called no function");
  const Json& call = (*calls)[results];
  const bool all = results + 1 == calls->size();
  const Json function = call.is_object() ? call.value("function", Json::object()) : Json::object();
  ask({{"role", "tool"},
       {"tool_call_id", call.is_object() ? call.value("id", Json()) : Json()},
       {"name", function.is_object() ? function.value("name", Json()) : Json()},
       {"content", text}},
      all);
}

void ChatCommand::set_system(const std::string& text) {
  const bool there = !messages.empty() && messages[0].value("role", "") == "system";
  if (there) messages.erase(messages.begin());
  if (!text.empty()) messages.insert(messages.begin(), Json{{"role", "system"}, {"content", text}});
}

void ChatCommand::load(const std::string& path) {
  Json read = parse_json(read_text(path), path);
  if (read.is_object() && read.contains("messages")) read = Json(read["messages"]);
  bool good = read.is_array();
  if (good) {
    for (const Json& m : read) good = good && m.is_object() && m.contains("role") && m["role"].is_string();
  }
  if (!good) {
    fail(ErrorCode::invalid_argument, "{}: expected a list of messages, such as [{{\"role\": \"user\", \"content\": \"Hello\"}}]",
         path);
  }
  messages = std::move(read);
}

// False: leave.
bool ChatCommand::obey(const std::string& line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::size_t start = std::min(line.find_first_not_of(' ', space), line.size());
  const std::string rest = line.substr(start);
  if (word == "/exit") return false;
  try {
    if (word == "/help") {
      say(kHelp);
    } else if (word == "/system") {
      set_system(rest);
    } else if (word == "/reset") {
      messages = Json::array();
      set_system(system);
    } else if (word == "/result") {
      give_result(rest);
    } else if (word == "/stats") {
      say(last_stats.empty() ? "no answer yet" : last_stats);
    } else if ((word == "/save" || word == "/load") && rest.empty()) {
      say(word + " needs the name of a file");
    } else if (word == "/save") {
      write_file_atomically(rest, dump_json(messages, 2) + "\n");
    } else if (word == "/load") {
      load(rest);
    } else {
      say(word + " is unknown; /help lists the commands");
    }
  } catch (const Error& e) {
    note(fmt::format("error: {}", e.what()));
    failed = true;
  }
  return true;
}

// Reads one question, which may take several lines; nothing at the end of input.
std::optional<std::string> read_question(LineEditor& editor) {
  std::string question;
  bool block = false;
  while (true) {
    std::optional<std::string> line = editor.read(question.empty() && !block ? "> " : ". ");
    if (!line) {
      if (break_seen() && editor.terminal()) {  // Ctrl-C at the prompt: begin anew
        forget_break(), block = false;
        question.clear();
        draw("\n");
        continue;
      }
      return question.empty() ? std::nullopt : std::optional(question);
    }
    if (*line == "\"\"\"") {
      if (block) return question;
      block = true;
      continue;
    }
    const bool more = !block && line->ends_with('\\');
    if (more) line->pop_back();
    if (!question.empty()) question += '\n';
    question += *line;
    if (!block && !more) return question;
  }
}

void ChatCommand::converse() {
  LineEditor editor;
  if (editor.terminal()) say("/help lists the commands; Ctrl-D exits.");
  while (std::optional<std::string> question = read_question(editor)) {
    if (question->find_first_not_of(" \t\n") == std::string::npos) continue;
    if (question->starts_with('/') && question->find('\n') == std::string::npos) {
      if (!obey(*question)) break;
    } else {
      ask({{"role", "user"}, {"content", std::move(*question)}}, true);
    }
  }
}

int ChatCommand::run() {
  flags.check();
  if (command.count("--tools") > 0) tools = dump_json(parse_json(read_text(tools_file), tools_file));
  const bool given = command.count("--messages") > 0;
  if (given) load(messages_file);
  if (!system.empty()) set_system(system);
  if (print_prompt) {
    LineEditor editor;
    if (!given) messages.push_back({{"role", "user"}, {"content", read_question(editor).value_or("")}});
    print_exact(load_module<text::Tools>().render(text_model(flags.model), input()));
    return kOk;
  }
  model = flags.open();
  settings = flags.settings(*model);
  if (given) {
    answer();
    return kOk;
  }
  catch_break();
  converse();
  return failed ? kFailed : kOk;
}

}  // namespace

void add_chat(const Command& app, Action& action) {
  const Command command = app.add_subcommand("chat", "Chat with a language model");
  const auto c = std::make_shared<ChatCommand>();
  c->command = command;
  c->flags.add_to(command);
  command->add_option("--system", c->system, "System message that precedes the conversation")->type_name("TEXT");
  command->add_option("--messages", c->messages_file, "Answer this conversation and exit")->type_name("FILE");
  command->add_option("--tools", c->tools_file, "JSON list of functions that the model may call")->type_name("FILE");
  command->add_flag("--allow-control-tokens", c->control_tokens,
                    "Names of special tokens in messages are these tokens, not text");
  command->add_flag("--print-prompt", c->print_prompt, "Print the formatted messages and exit");
  command->footer(kChatExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
