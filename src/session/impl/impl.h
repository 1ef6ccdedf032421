#pragma once
// The parts of a Session, known only to the functions of the public header.

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

#include "cache/compiled_model.h"
#include "cache/decision.h"
#include "session/compiled_chain.h"
#include "session/failover.h"
#include "session/observe/telemetry.h"
#include "session/open.h"
#include "session/selection.h"

namespace sdx {

namespace session {
inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
}  // namespace session

struct Session::Impl {
  std::shared_ptr<session::SessionContext> context = std::make_shared<session::SessionContext>();
  std::string shown;  // the model's name in errors
  session::Selection selection;
  std::shared_ptr<session::Failover> failover;
  std::vector<std::pair<std::string, std::string>> metadata, custom_metadata;
  std::unique_ptr<session::Telemetry> telemetry;  // null: it is off
  double load_ms = 0, init_ms = 0;

  // With select "measured", the first run decides which chain `failover` has.
  bool measures = false;
  std::mutex deciding;
  bool undecided = false;  // guarded by `deciding`
  std::filesystem::path decision;

  // Records a model that is to be kept, until it is written. Only the thread that opens the session touches it: compilers in the
  // background may outlive the session.
  std::unique_ptr<cache::Recording> recording;
  std::string unused_cache;  // why nothing is kept, or why the kept file is not used

  mutable std::mutex mutex;  // guards what follows, and `failover` where the session measures
  cache::Decision measurement;
  std::string why;
  std::vector<std::string> warnings;
  std::vector<std::string> option_notes;  // join the warnings once the model's own are known
  bool warned_of_extents = false, warned_of_symbols = false;

  ~Impl() {
    if (failover) failover->close();
  }

  // opening.cc
  void load(session::Source& source, const SessionOptions& options, const session::InternalOptions& internal);
  Model read(session::Source& source, const session::InternalOptions& internal);
  bool open_compiled(const session::InternalOptions& internal);
  void choose(const session::InternalOptions& internal);
  void open(const session::InternalOptions& internal);
  void keep();
  void describe_interface();
  void start();

  // deciding.cc
  void open_measured();
  void decide(const session::Request& request);
  void use_chain_from(std::size_t first, std::shared_ptr<const session::CompiledChain> ready, cache::Decision found,
                      const std::string& how);
  std::shared_ptr<session::Failover> current_failover() const;

  // running.cc
  NamedValues run(const NamedValues& given, const RunOptions& run_options, const session::InternalRunOptions& internal);
  std::vector<Value> arrange(const NamedValues& given, std::size_t& which) const;
  std::vector<Value> answer(const session::Request& request);
  void warn_of_other_extents(const std::vector<Value>& values);
  void warn_of_two_sizes(const std::vector<Value>& values);
  void warn(std::string text);

  // session.cc
  Report report() const;
};

// Gives functions that are not members access to the private parts of Session.
struct SessionAccess {
  using Impl = Session::Impl;
  static Session session(std::unique_ptr<Impl> impl) { return Session(std::move(impl)); }
  static Impl& impl(const Session& session) { return *session.impl_; }
};

}  // namespace sdx
