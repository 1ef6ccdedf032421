// Inputs and outputs that a session keeps from run to run.
#include <algorithm>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

struct OrtIoBinding {
  OrtSession* session;
  struct Bound {
    std::string name;
    OrtValue value;
    bool given = false;  // by the program: results go into its memory. Else each run makes a value
  };
  std::vector<Bound> inputs, outputs;
};

namespace {

OrtStatus* create(OrtSession* session, OrtIoBinding** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtIoBinding{&require(session, "session"), {}, {}};
  });
}
void release(OrtIoBinding* binding) { delete binding; }

void put(std::vector<OrtIoBinding::Bound>& list, OrtIoBinding::Bound bound) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const auto& b) { return b.name == bound.name; });
  if (it != list.end()) {
    *it = std::move(bound);
  } else {
    list.push_back(std::move(bound));
  }
}

OrtStatus* bind_input(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtIoBinding& b = require(binding, "binding_ptr");
    put(b.inputs, {&require(name, "name"), require(value, "val_ptr"), true});
  });
}
OrtStatus* bind_output(OrtIoBinding* binding, const char* name, const OrtValue* value) {
  return guarded([&] {
    OrtIoBinding& b = require(binding, "binding_ptr");
    put(b.outputs, {&require(name, "name"), require(value, "val_ptr"), true});
  });
}
OrtStatus* bind_output_to_device(OrtIoBinding* binding, const char* name, const OrtMemoryInfo* info) {
  return guarded([&] {
    OrtIoBinding& b = require(binding, "binding_ptr");
    require(info, "mem_info_ptr");
    put(b.outputs, {&require(name, "name"), {}, false});
  });
}

OrtStatus* run(OrtSession* session, const OrtRunOptions* options, const OrtIoBinding* binding) {
  return guarded([&] {
    OrtSession& s = require(session, "session");
    auto& b = const_cast<OrtIoBinding&>(require(binding, "binding_ptr"));  // which receives the results
    std::vector<const char*> input_names, output_names;
    std::vector<const OrtValue*> inputs;
    std::vector<OrtValue*> outputs;
    for (const auto& bound : b.inputs) {
      input_names.push_back(bound.name.c_str());
      inputs.push_back(&bound.value);
    }
    for (auto& bound : b.outputs) {
      if (!bound.given) bound.value = {};
      output_names.push_back(bound.name.c_str());
      outputs.push_back(&bound.value);
    }
    run_session(s, options, input_names.data(), inputs.data(), inputs.size(), output_names.data(), outputs.size(),
                outputs.data());
  });
}

// All names in one text, without zeros between them.
OrtStatus* output_names(const OrtIoBinding* binding, OrtAllocator* allocator, char** buffer, std::size_t** lengths,
                        std::size_t* count) {
  return guarded([&] {
    const auto& outputs = require(binding, "binding_ptr").outputs;
    require(buffer, "buffer") = nullptr;
    require(lengths, "lengths") = nullptr;
    require(count, "count") = outputs.size();
    if (outputs.empty()) return;
    std::string all;
    for (const auto& bound : outputs) all += bound.name;
    auto* const sizes = static_cast<std::size_t*>(allocate(allocator, outputs.size() * sizeof(std::size_t)));
    for (std::size_t i = 0; i < outputs.size(); ++i) sizes[i] = outputs[i].name.size();
    *buffer = copy_text(allocator, all);
    *lengths = sizes;
  });
}

OrtStatus* output_values(const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** out, std::size_t* count) {
  return guarded([&] {
    const auto& outputs = require(binding, "binding_ptr").outputs;
    require(out, "output") = nullptr;
    require(count, "output_count") = outputs.size();
    if (outputs.empty()) return;
    std::vector<std::unique_ptr<OrtValue>> values;
    for (const auto& bound : outputs) values.push_back(std::make_unique<OrtValue>(bound.value));
    auto** const list = static_cast<OrtValue**>(allocate(allocator, outputs.size() * sizeof(OrtValue*)));
    for (std::size_t i = 0; i < values.size(); ++i) list[i] = values[i].release();
    *out = list;
  });
}

void clear_inputs(OrtIoBinding* binding) {
  if (binding != nullptr) binding->inputs.clear();
}
void clear_outputs(OrtIoBinding* binding) {
  if (binding != nullptr) binding->outputs.clear();
}
OrtStatus* synchronize(OrtIoBinding* binding) {
  return guarded([&] { require(binding, "binding_ptr"); });  // memory of the host is always up to date
}

}  // namespace

void fill_io_binding(Table& table) {
  table.set(Slot::CreateIoBinding, &create);
  table.set(Slot::ReleaseIoBinding, &release);
  table.set(Slot::BindInput, &bind_input);
  table.set(Slot::BindOutput, &bind_output);
  table.set(Slot::BindOutputToDevice, &bind_output_to_device);
  table.set(Slot::RunWithBinding, &run);
  table.set(Slot::GetBoundOutputNames, &output_names);
  table.set(Slot::GetBoundOutputValues, &output_values);
  table.set(Slot::ClearBoundInputs, &clear_inputs);
  table.set(Slot::ClearBoundOutputs, &clear_outputs);
  table.set(Slot::SynchronizeBoundInputs, &synchronize);
  table.set(Slot::SynchronizeBoundOutputs, &synchronize);
}

}  // namespace sdx::dropin
