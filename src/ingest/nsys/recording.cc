// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/recording.h"

#include <filesystem>

#include "base/child_process.h"
#include "base/opened.h"

namespace lamina::ingest::nsys {

namespace fs = std::filesystem;

Result<std::unique_ptr<ExportedFile>> ExportedFile::Make(
    const std::string& path) {
  const auto exporter = FindProgram("nsys");
  if (!exporter) {
    return Fail(InputError(path,
                           "is a recording of Nsight Systems, which only its "
                           "own exporter reads, and nsys is not installed",
                           "export it where it was recorded: nsys export "
                           "--type sqlite FILE.nsys-rep"));
  }
  std::unique_ptr<ExportedFile> file(new ExportedFile);
  LAMINA_ASSIGN(file->folder_, MakeTemporaryFolder());
  file->path_ = file->folder_.path() + "/export.sqlite";
  ReadAlso(file->path_);
  std::error_code error;
  // Large recordings take minutes.
  constexpr std::chrono::minutes kLimit{60};
  LAMINA_ASSIGN(const ChildResult result,
                RunChild({*exporter, "export", "--type", "sqlite", "--output",
                          file->path_, fs::absolute(path, error).string()},
                         "", kLimit));
  if (result.exit_status != 0 || !fs::exists(file->path_, error)) {
    std::string said = result.err.empty() ? result.out : result.err;
    while (said.ends_with('\n')) said.pop_back();
    said = said.substr(said.rfind('\n') + 1);
    std::string what = result.timed_out ? "nsys export took more than an hour"
                                        : "nsys export failed";
    if (!said.empty()) what += ": " + said;
    return Fail(InputError(path, what,
                           "the recording may be of a newer version than the "
                           "installed nsys"));
  }
  return file;
}

}  // namespace lamina::ingest::nsys
