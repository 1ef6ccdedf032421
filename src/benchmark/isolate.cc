// A cell in a process of its own. Parent and child send each other a letter, a length, and as many bytes.

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/system/processes/worker.h"
#include "base/text/json_text.h"
#include "benchmark/cell.h"

namespace sdx::benchmark {
namespace {

using nlohmann::json;

enum class Kind : char { open = 'O', run = 'R', close = 'C', error = 'E' };

struct Message {
  Kind kind = Kind::error;
  std::string body;
};

bool send(const Channel& channel, Kind kind, std::string_view body) {
  const std::uint64_t size = body.size();
  return channel.write(&kind, 1) && channel.write(&size, sizeof size) && channel.write(body.data(), body.size());
}

bool receive(const Channel& channel, Message& m) {
  std::uint64_t size = 0;
  if (!channel.read(&m.kind, 1) || !channel.read(&size, sizeof size)) return false;
  m.body.resize(size);
  return channel.read(m.body.data(), size);
}

// Text of other libraries may hold anything; it must not break the message.
json operators_json(const std::vector<OperatorTime>& operators) {
  json out = json::array();
  for (const OperatorTime& o : operators) {
    out.push_back({o.op, o.kernel, o.provider, o.calls, o.ms, o.share, o.gflops_per_s, o.gbytes_per_s});
  }
  return out;
}

std::vector<OperatorTime> operators_from(const json& list) {
  std::vector<OperatorTime> out;
  for (const json& o : list) out.push_back({o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]});
  return out;
}

json nodes_json(const std::vector<NodeTime>& nodes) {
  json out = json::array();
  for (const NodeTime& n : nodes) {
    out.push_back({n.name, n.op, n.kernel, n.provider, n.ms, n.share, n.gflop, n.gbyte, n.gflops_per_s, n.gbytes_per_s});
  }
  return out;
}

std::vector<NodeTime> nodes_from(const json& list) {
  std::vector<NodeTime> out;
  for (const json& n : list) out.push_back({n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]});
  return out;
}

json places_json(const std::vector<ProviderNodes>& places) {
  json out = json::array();
  for (const ProviderNodes& p : places) out.push_back({p.provider, p.nodes});
  return out;
}

std::vector<ProviderNodes> places_from(const json& list) {
  std::vector<ProviderNodes> out;
  for (const json& p : list) out.push_back({p[0], p[1]});
  return out;
}

std::string pack(const Load& load) {
  const std::int64_t head[5] = {load.wall_ns, load.cpu_ns, load.preempted, load.compute_ns, load.memory_ns};
  std::string out(reinterpret_cast<const char*>(head), sizeof head);
  out.append(reinterpret_cast<const char*>(load.samples.data()), load.samples.size() * sizeof(Sample));
  return out;
}

Load unpack(const std::string& body) {
  Load load;
  std::int64_t head[5];
  if (body.size() < sizeof head) throw CellError{"internal", "a message of the measuring process is too short"};
  std::memcpy(head, body.data(), sizeof head);
  load.wall_ns = head[0];
  load.cpu_ns = head[1];
  load.preempted = head[2];
  load.compute_ns = head[3];
  load.memory_ns = head[4];
  load.samples.resize((body.size() - sizeof head) / sizeof(Sample));
  if (!load.samples.empty()) std::memcpy(load.samples.data(), body.data() + sizeof head, load.samples.size() * sizeof(Sample));
  return load;
}

// The child's side.
void serve(const Channel& channel, CellOptions options) {
  const std::unique_ptr<Cell> cell = make_local_cell(std::move(options));
  Message m;
  while (receive(channel, m)) {
    try {
      if (m.kind == Kind::open) {
        const Opened o = cell->open();
        send(channel, Kind::open,
             dump_json(json{o.provider, o.runtime, o.fallbacks, o.notes, o.load_ms, o.init_ms, places_json(o.places)}));
      } else if (m.kind == Kind::run) {
        Order order;
        std::memcpy(&order, m.body.data(), std::min(m.body.size(), sizeof order));
        send(channel, Kind::run, pack(cell->run(order, {})));
      } else {
        const Closed c = cell->close();
        send(channel, Kind::close, dump_json(json{c.peak_rss_mb, operators_json(c.operators), nodes_json(c.nodes)}));
        return;
      }
    } catch (const CellError& e) {
      send(channel, Kind::error, dump_json(json{e.code, e.message}));
    }
  }
}

class IsolatedCell : public Cell {
 public:
  explicit IsolatedCell(CellOptions options) : options_(std::move(options)) {}

  Opened open() override {
    start();
    const json j = json::parse(ask(Kind::open, {}));
    return {j[0], j[1], j[2], j[3], places_from(j[6]), j[4], j[5]};
  }

  Load run(const Order& order, const std::function<void(std::int64_t)>&) override {
    return unpack(ask(Kind::run, {reinterpret_cast<const char*>(&order), sizeof order}));
  }

  Closed close() override {
    const json j = json::parse(ask(Kind::close, {}));
    return {j[0], operators_from(j[1]), nodes_from(j[2])};
  }

 private:
  void start() {
    try {
      worker_.emplace([this](const Channel& channel) {
        if (options_.quiet) log::set_level(log::Level::error);
        serve(channel, std::move(options_));
      });
    } catch (const Error& e) {
      throw CellError{"io", e.what()};
    }
  }

  std::string ask(Kind kind, std::string_view body) {
    Message m;
    if (worker_ && send(worker_->channel(), kind, body) && receive(worker_->channel(), m)) {
      if (m.kind != Kind::error) return std::move(m.body);
      const json j = json::parse(m.body);
      throw CellError{j[0], j[1]};
    }
    throw CellError{"crashed", "the backend's process " + (worker_ ? worker_->ended() : "is gone")};
  }

  CellOptions options_;
  std::optional<Worker> worker_;
};

}  // namespace

std::unique_ptr<Cell> make_isolated_cell(CellOptions options) { return std::make_unique<IsolatedCell>(std::move(options)); }

}  // namespace sdx::benchmark
