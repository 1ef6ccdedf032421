// Devices, streams and waiting. sardonyx/array/_streams.py makes classes of it.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

Object numbers(const mx::Device& d) { return tuple(whole(static_cast<int>(d.type)), whole(d.index)); }
Object numbers(const mx::Stream& s) {
  return tuple(whole(s.index), whole(static_cast<int>(s.device.type)), whole(s.device.index));
}

mx::Device device_of(int type, int index) {
  if (type != 0 && type != 1) raise_value_error("a device is a CPU or a GPU");
  return {type == 0 ? mx::Device::Type::cpu : mx::Device::Type::gpu, index};
}

Object default_device() { return numbers(mx::default_device()); }
void set_default_device(int type, int index) { mx::set_default_device(device_of(type, index)); }
Object default_stream(int type, int index) { return numbers(mx::default_stream(device_of(type, index))); }
void set_default_stream(int stream, int type, int index) { mx::set_default_stream({stream, device_of(type, index)}); }
Object new_stream(int type, int index) { return numbers(mx::new_stream(device_of(type, index))); }
void synchronize(Any stream) {
  if (stream.object == Py_None) return unlocked([] { mx::synchronize(); });
  const StreamOrDevice where = to_stream(stream.object);
  const mx::Stream one =
      std::holds_alternative<mx::Stream>(where) ? std::get<mx::Stream>(where) : mx::default_stream(std::get<mx::Device>(where));
  unlocked([&] { mx::synchronize(one); });
}

// The names of the backends, the one in use first.
Object backend_info() {
  return list_of(unlocked([] { return mx::backend_info(); }), [](const mx::BackendInfo& b) {
    Object d = new_dict();
    set(d, "name", text(b.name));
    set(d, "available", truth(b.available));
    set(d, "reason", text(b.reason));
    set(d, "device", text(b.device));
    set(d, "version", text(b.version));
    return d;
  });
}
Object get_backend() {
  return text(unlocked([] { return mx::get_backend(); }));
}
void set_backend(std::string name) {
  unlocked([&] { mx::set_backend(name); });
}

}  // namespace

std::vector<Definition> stream_functions() {
  return {
      def<&backend_info>("backend_info()"),
      def<&get_backend>("get_backend()"),
      def<&set_backend>("set_backend(name)"),
      def<&default_device>("_default_device()"),
      def<&set_default_device>("_set_default_device(type, index)"),
      def<&default_stream>("_default_stream(type, index)"),
      def<&set_default_stream>("_set_default_stream(stream, type, index)"),
      def<&new_stream>("_new_stream(type, index)"),
      def<&synchronize>("_synchronize(stream=None)"),
  };
}

}  // namespace sdx::python::arrays
