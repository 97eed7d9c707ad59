// SPDX-License-Identifier: Apache-2.0
#include "graph/folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"

namespace lamina::graph {
namespace {

// Stages and transforms both hold underscores: longer stages first.
constexpr std::string_view kStages[] = {
    "post_load_fusion", "pattern_matcher", "export_onnx", "weight_load",
    "post_export",      "cache_init",      "visualize",   "sharding",
    "factory",          "compile",         "export"};

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string StemOf(std::string_view path) {
  std::string_view name = BaseName(path);
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  if (name.ends_with(".txt")) name.remove_suffix(4);
  return std::string(name);
}

bool ParseDumpName(std::string_view path, DumpFile& file) {
  file.path = path;
  file.name = BaseName(path);
  file.stem = StemOf(path);
  std::string_view rest = file.stem;
  if (file.stem.size() == file.name.size()) return false;  // no .txt
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || rest[digits] != '_')
    return false;
  const auto number = ParseInt(rest.substr(0, digits));
  if (!number) return false;
  file.number = *number;
  rest.remove_prefix(digits + 1);
  file.stage.clear();
  file.transform = rest;
  for (const std::string_view stage : kStages) {
    if (!rest.starts_with(stage) || rest.size() <= stage.size() ||
        rest[stage.size()] != '_')
      continue;
    file.stage = stage;
    file.transform = rest.substr(stage.size() + 1);
    break;
  }
  return true;
}

namespace {

namespace fs = std::filesystem;

// Graphs of a compilation by PyTorch, as tlparse and TORCH_COMPILE_DEBUG call
// their files, and the stage that each belongs to.
constexpr std::pair<std::string_view, std::string_view> kCompileStages[] = {
    {"dynamo_output_graph", "dynamo"},
    {"optimize_ddp_split_graph", "dynamo"},
    {"compiled_autograd_graph", "dynamo"},
    {"exported_program", "export"},
    {"before_pre_grad_graph", "pre_grad"},
    {"after_pre_grad_graph", "pre_grad"},
    {"inductor_pre_grad_graph", "pre_grad"},
    {"aot_joint_graph", "aot"},
    {"aot_forward_graph", "aot"},
    {"aot_backward_graph", "aot"},
    {"aot_inference_graph", "aot"},
    {"before_post_grad_graph", "post_grad"},
    {"fx_graph_readable", "post_grad"},
    {"after_post_grad_graph", "post_grad"},
    {"inductor_post_grad_graph", "post_grad"},
    {"fx_graph_transformed", "post_grad"},
};
constexpr size_t kMostFolders = 10000;

// Reads "after_post_grad_graph_12.txt": the run numbers its files; those of a
// debug folder have none and stand in the order of the stages.
bool ParseCompileName(const fs::path& path, DumpFile& file) {
  const std::string extension = path.extension().string();
  if (extension != ".txt" && extension != ".py") return false;
  file.path = path.string();
  file.name = path.filename().string();
  file.stem = path.stem().string();
  std::string_view name = file.stem;
  file.number = -1;
  const size_t bar = name.rfind('_');
  if (bar != std::string_view::npos) {
    if (const auto number = ParseInt(name.substr(bar + 1))) {
      file.number = *number;
      name = name.substr(0, bar);
    }
  }
  for (size_t i = 0; i < std::size(kCompileStages); ++i) {
    if (kCompileStages[i].first != name) continue;
    if (file.number < 0) file.number = static_cast<int64_t>(i);
    file.stage = kCompileStages[i].second;
    file.transform = name;
    return true;
  }
  return false;
}

// The graphs of the largest compilation below a folder of tlparse or
// TORCH_COMPILE_DEBUG.
std::vector<DumpFile> ListCompilation(const std::string& folder) {
  std::error_code error;
  std::vector<DumpFile> best;
  uintmax_t most = 0;
  std::vector<fs::path> folders{folder};
  for (fs::recursive_directory_iterator
           it(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && it != end && folders.size() < kMostFolders;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) folders.push_back(it->path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& one : folders) {
    std::vector<DumpFile> files;
    uintmax_t bytes = 0;
    std::error_code own;
    for (fs::directory_iterator it(one, own), end; !own && it != end;
         it.increment(own)) {
      DumpFile file;
      std::error_code ignored;
      if (!it->is_regular_file(ignored) || !ParseCompileName(it->path(), file))
        continue;
      const uintmax_t size = it->file_size(ignored);
      if (!ignored) bytes += size;
      files.push_back(std::move(file));
    }
    if (files.empty() || bytes <= most) continue;
    most = bytes;
    best = std::move(files);
  }
  std::sort(best.begin(), best.end(), [](const DumpFile& a, const DumpFile& b) {
    return std::tie(a.number, a.name) < std::tie(b.number, b.name);
  });
  return best;
}

}  // namespace

Result<std::vector<DumpFile>> ListDumps(const std::string& folder) {
  std::error_code error;
  std::vector<DumpFile> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    DumpFile file;
    std::error_code ignored;
    if (it->is_regular_file(ignored) &&
        ParseDumpName(it->path().string(), file)) {
      NoteInput(file.path);
      out.push_back(std::move(file));
    }
  }
  if (error) {
    std::error_code ignored;
    return Fail(
        fs::is_regular_file(folder, ignored)
            ? InputError(folder, "is one file, a run is a folder of dumps",
                         "give the folder; one dump is for ⟨graph_layers()⟩, "
                         "layer, print and others")
            : InputError(folder, error.message()));
  }
  if (out.empty()) {
    out = ListCompilation(folder);
    for (const DumpFile& file : out) NoteInput(file.path);
    if (!out.empty()) return out;
  }
  if (out.empty()) {
    return Fail(
        InputError(folder, "no graph dump in this folder",
                   "dumps are named like "
                   "016_pattern_matcher_match_rmsnorm_pattern.txt, and "
                   "those of tlparse like after_post_grad_graph_12.txt"));
  }
  std::sort(out.begin(), out.end(), [](const DumpFile& a, const DumpFile& b) {
    return std::tie(a.number, a.name) < std::tie(b.number, b.name);
  });
  return out;
}

namespace {

// "run.aot_forward_graph_5.txt": stage "aot", number 5, prefix "run.".
struct CompileName {
  std::string prefix;
  std::string_view kind;  // "aot_forward_graph"
  std::string_view stage;
  int64_t number = -1;  // none
};

std::optional<CompileName> ReadCompileName(const fs::path& path) {
  DumpFile file;
  std::string name = path.filename().string();
  for (const auto& [known, stage] : kCompileStages) {
    const size_t at = name.rfind(known);
    if (at == std::string::npos || (at > 0 && name[at - 1] != '.' &&
                                    name[at - 1] != '_' && name[at - 1] != '-'))
      continue;
    if (!ParseCompileName(path.parent_path() / name.substr(at), file)) continue;
    CompileName out;
    out.prefix = name.substr(0, at);
    out.kind = known;
    out.stage = stage;
    // Files without a number got that of their stage.
    if (file.stem != known) out.number = file.number;
    return out;
  }
  return std::nullopt;
}

struct SourceGraph {
  std::string prefix;
  int64_t number = -1;
  std::string path;
};
using Listing = std::shared_ptr<const std::vector<SourceGraph>>;

// The graphs of dynamo of folders, for a run reads a folder once for each file.
class Listings {
 public:
  Listing Of(const fs::path& folder) {
    std::error_code error;
    const fs::file_time_type written = fs::last_write_time(folder, error);
    // Within one tick of the clock of files two changes have one time.
    const bool settled = !error && written + std::chrono::seconds(2) <
                                       fs::file_time_type::clock::now();
    if (settled) {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find(folder.string());
      if (found != kept_.end() && found->second.first == written)
        return found->second.second;
    }
    Listing made = Read(folder);
    if (settled) {
      const std::lock_guard lock(mutex_);
      if (kept_.size() >= kMostKept) kept_.clear();
      kept_[folder.string()] = {written, made};
    }
    return made;
  }

 private:
  static constexpr size_t kMostKept = 16;

  static Listing Read(const fs::path& folder) {
    std::vector<SourceGraph> out;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end;
         !error && it != end && out.size() < kMostFolders;
         it.increment(error)) {
      auto one = ReadCompileName(it->path());
      std::error_code ignored;
      if (one && one->stage == "dynamo" && it->is_regular_file(ignored))
        out.push_back(
            {std::move(one->prefix), one->number, it->path().string()});
    }
    std::sort(out.begin(), out.end(),
              [](const SourceGraph& a, const SourceGraph& b) {
                return std::tie(a.number, a.path) < std::tie(b.number, b.path);
              });
    return std::make_shared<const std::vector<SourceGraph>>(std::move(out));
  }

  std::mutex mutex_;
  std::map<std::string, std::pair<fs::file_time_type, Listing>> kept_;
};

}  // namespace

std::vector<std::string> SourceGraphsBeside(const std::string& path) {
  const auto own = ReadCompileName(path);
  if (!own || (own->stage != "aot" && own->stage != "post_grad")) return {};
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  static Listings listings;
  const Listing all = listings.Of(folder);
  std::vector<std::string> out;
  size_t count = 0;
  for (auto one = all->rbegin(); one != all->rend(); ++one) {
    if (one->prefix != own->prefix) continue;
    ++count;
    if (own->number < 0 || one->number <= own->number) out.push_back(one->path);
  }
  if (count == 1) {
    for (const SourceGraph& one : *all) {
      if (one.prefix == own->prefix) return {one.path};
    }
  }
  if (own->number < 0) return {};
  // Written as soon as dynamo had its graph.
  const bool at_once = own->kind == "aot_joint_graph" ||
                       own->kind == "aot_forward_graph" ||
                       own->kind == "aot_inference_graph";
  if (at_once && out.size() > 1) out.resize(1);
  return out;
}

Result<std::string> PickDump(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  LAMINA_ASSIGN(const std::vector<DumpFile> files, ListDumps(path));
  return files.back().path;
}

std::string NameConflict(const DumpFile& file, const Header& header) {
  if (header.transform.empty() && header.stage.empty()) return {};
  // Of an unknown stage nothing is known about where the name splits.
  if (file.stem.ends_with("_" + header.stage + "_" + header.transform))
    return {};
  return EscapeTerminal(file.name) + ": the header says stage '" +
         EscapeTerminal(header.stage) + "', transform '" +
         EscapeTerminal(header.transform) + "', which is taken";
}

}  // namespace lamina::graph
