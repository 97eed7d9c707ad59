// SPDX-License-Identifier: Apache-2.0
#include "cli/perfetto_output.h"

#include <filesystem>

#include "base/byte_sink.h"
#include "emit/perfetto/trace_writer.h"

namespace lamina::cli {
namespace {

// Removes a file that was only needed on the way.
class Leftover {
 public:
  explicit Leftover(std::string path) : path_(std::move(path)) {}
  ~Leftover() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

 private:
  std::string path_;
};

}  // namespace

Status WriteTraceAs(
    const std::string& output, Common& common,
    const std::function<Status(const std::string&)>& write_json) {
  if (!emit::perfetto::IsPerfettoName(output)) return write_json(output);
  const std::string json = output + ".part.json";
  const Leftover leftover(json);
  LAMINA_TRY(write_json(json));
  LAMINA_ASSIGN(auto session, engine::Session::Open(json, common.Open()));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  emit::perfetto::Extras extras;
  emit::perfetto::WriteTrace(session->trace(), extras, *sink);
  return sink->Close();
}

}  // namespace lamina::cli
