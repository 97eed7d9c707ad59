// SPDX-License-Identifier: Apache-2.0
#include "questions/trace_output.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "base/leftovers.h"
#include "emit/perfetto/trace_writer.h"

namespace lamina::questions {

Status WriteTraceAs(
    const std::string& output, Asker& asker,
    const std::function<Status(const std::string&)>& write_json) {
  if (!emit::perfetto::IsPerfettoName(output)) return write_json(output);
  const UnfinishedFile json = UnfinishedFile::Beside(output);
  if (json.fd < 0) {
    return Fail(InputError(output,
                           std::string("cannot write: ") + std::strerror(errno),
                           "check the path, its permissions and the free "
                           "space"));
  }
  ::close(json.fd);
  LAMINA_TRY(write_json(json.leftover.path()));
  engine::OpenOptions open = asker.Open();
  open.cache = false;  // nobody opens it again
  LAMINA_ASSIGN(auto session,
                engine::Session::Open(json.leftover.path(), open));
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  emit::perfetto::Extras extras;
  emit::perfetto::WriteTrace(session->trace(), extras, *sink);
  return sink->Close();
}

void WarnOfLoss(const std::string& input, const emit::CopyLoss& loss,
                Asker& asker) {
  if (!loss.any()) return;
  asker.Warn("copy_loss",
             EscapeTerminal(input) +
                 " is no JSON throughout; in the copy: " + loss.ToString());
}

}  // namespace lamina::questions
