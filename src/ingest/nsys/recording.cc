// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/recording.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/child_process.h"

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
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  std::string folder = (temporary / "lamina-nsys-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return Fail(InputError(
        temporary.string(),
        std::string("no folder for the export: ") + std::strerror(errno),
        "set TMPDIR to a folder with room"));
  }
  std::unique_ptr<ExportedFile> file(new ExportedFile);
  file->folder_ = folder;
  file->path_ = folder + "/export.sqlite";
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

ExportedFile::~ExportedFile() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace lamina::ingest::nsys
