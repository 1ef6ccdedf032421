// Sessions over models that programs build or extend.

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <span>

#include "dropin/editor/functions.h"
#include "dropin/editor/parts.h"
#include "dropin/status.h"
#include "onnx/reader.h"

namespace sdx::dropin {
namespace {

// Models of sessions that may still be extended.
struct Editing {
  Model model;
  const OrtEnv* env;
};
std::mutex g_editing;
std::map<const OrtSession*, std::shared_ptr<Editing>>& editing() {
  static auto* const sessions = new std::map<const OrtSession*, std::shared_ptr<Editing>>;
  return *sessions;
}

std::shared_ptr<Editing> edited(const OrtSession* session) {
  const std::lock_guard lock(g_editing);
  const auto it = editing().find(&require(session, "session"));
  if (it == editing().end())
    fail_ort(ORT_FAIL,
             "Session does not contain a loaded model that can be edited: it comes from CreateModelEditorSession, and ends with "
             "FinalizeModelEditorSession");
  return it->second;
}

OrtStatus* create_from_model(const OrtEnv* env, const OrtModel* model, const OrtSessionOptions* options,
                             OrtSession** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = open_session(env, build_model(require(model, "model")), options);
  });
}

OrtSession* start_editing(const OrtEnv* env, Model model, const OrtSessionOptions* options) {
  OrtSession* const made = open_session(env, Model(model), options);
  const std::shared_ptr<Editing> state(new Editing{std::move(model), env});
  // The entry is erased together with the session.
  made->kept.emplace_back(static_cast<const void*>(nullptr), [made](const void*) {
    const std::lock_guard lock(g_editing);
    editing().erase(made);
  });
  const std::lock_guard lock(g_editing);
  editing()[made] = state;
  return made;
}

OrtStatus* create_editor(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtSession** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = start_editing(env, read_model(std::filesystem::path(&require(path, "model_path"))), options);
  });
}

OrtStatus* create_editor_from_array(const OrtEnv* env, const void* bytes, std::size_t size, const OrtSessionOptions* options,
                                    OrtSession** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    const auto* data = &require(static_cast<const std::byte*>(bytes), "model_data");
    *out = start_editing(env, read_model(std::span(data, size), nullptr, {}), options);
  });
}

OrtStatus* opset_for_domain(const OrtSession* session, const char* domain, int* out) noexcept {
  return guarded([&] {
    const std::shared_ptr<Editing> state = edited(session);
    const std::string wanted = &require(domain, "domain");
    const auto it = state->model.opsets.find(wanted == "ai.onnx" ? "" : wanted);
    if (it == state->model.opsets.end()) fail_ort(ORT_FAIL, "Domain not used by model.");
    require(out, "opset") = it->second;
  });
}

OrtStatus* apply_model(OrtSession* session, OrtModel* model) noexcept {
  return guarded([&] {
    const std::shared_ptr<Editing> state = edited(session);
    Model extended = state->model;
    extend_model(extended, require(model, "model"));
    state->model = std::move(extended);
  });
}

OrtStatus* finalize(OrtSession* session, const OrtSessionOptions* options, OrtPrepackedWeightsContainer*) noexcept {
  return guarded([&] {
    const std::shared_ptr<Editing> state = edited(session);
    const std::unique_ptr<OrtSession> made(
        open_session(state->env, state->model, options != nullptr ? options : &session->options));
    session->session = std::move(made->session);
    session->inputs = std::move(made->inputs);
    session->overridable = std::move(made->overridable);
    session->kept.insert(session->kept.end(), made->kept.begin(), made->kept.end());
    const std::lock_guard lock(g_editing);
    editing().erase(session);
  });
}

}  // namespace

void fill_editor_sessions(EditorFunctions& f) {
  f.set(EditorFunction::CreateSessionFromModel, &create_from_model);
  f.set(EditorFunction::CreateModelEditorSession, &create_editor);
  f.set(EditorFunction::CreateModelEditorSessionFromArray, &create_editor_from_array);
  f.set(EditorFunction::SessionGetOpsetForDomain, &opset_for_domain);
  f.set(EditorFunction::ApplyModelToModelEditorSession, &apply_model);
  f.set(EditorFunction::FinalizeModelEditorSession, &finalize);
}

namespace {

const void* editor_table() noexcept {
  static const EditorFunctions functions = [] {
    EditorFunctions f{};
    fill_editor_parts(f);
    fill_editor_sessions(f);
    return f;
  }();
  return functions.functions;
}

}  // namespace

void fill_editor_values(Table& table);

void fill_editor(Table& table) {
  fill_editor_values(table);
  table.set(Slot::GetModelEditorApi, &editor_table);
}

}  // namespace sdx::dropin
