// SPDX-License-Identifier: Apache-2.0
#include "render/redact/paths.h"

#include <algorithm>

#include "base/text.h"

namespace lamina::render {
namespace {

using std::string_view;

// First folders of machines. A path below another one is found by the
// extension of its file, and then all below that folder.
constexpr string_view kRoots =
    " Applications Library System Users Volumes app apps autofs beegfs bin "
    "boot "
    "cluster code content cygdrive data dataset datasets dev efs etc export "
    "fsx "
    "gpfs home host kaggle lib lib64 lustre media mnt net nfs nix nobackup "
    "notebooks opt private proc proj project projects repo repos root run sbin "
    "scratch share shared snap srv storage sys tmp users usr var weka work "
    "workdir workspace workspaces ";

// Folders that are the same on every machine.
constexpr string_view kPublicFolders =
    " /bin /lib /lib32 /lib64 /opt/amdgpu /opt/conda/bin /opt/conda/lib "
    "/opt/nvidia /opt/rocm /sbin /usr/bin /usr/include /usr/lib /usr/lib32 "
    "/usr/lib64 /usr/libexec /usr/local/bin /usr/local/cuda "
    "/usr/local/include /usr/local/lib /usr/local/lib64 /usr/sbin /usr/share ";

constexpr string_view kExtensions =
    " a amdgcn arrow bin bz2 c cc cfg ckpt conf cpp csv cu cubin cuh cxx db "
    "dll "
    "dylib egg exe fatbin go gz h h5 hh hip hlo hpp hsaco html hxx inc ini inl "
    "ipynb java jl js json jsonl ll llir log lz4 md mlir npy npz nsys-rep o "
    "onnx parquet pb pbtxt pftrace pkl pt pth ptx py pyc pyi pyx qdrep rpd rs "
    "s "
    "safetensors sh so sqlite sqlite3 svg tar tgz toml ts tsv ttgir ttir txt "
    "whl xml xz yaml yml zip zst ";

bool IsSeparator(char c) { return c == '/' || c == '\\'; }
// Bytes that a path never ends before.
bool IsPathByte(char c) {
  return IsWordByte(c) ||
         string_view("_-.~@+%#$=^").find(c) != string_view::npos;
}

// Bytes that no path goes on behind.
bool EndsPath(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
         string_view("\"`<>|*?").find(c) != string_view::npos;
}

// Whether a path may begin here: not inside a word, a scope or another path.
bool MayBegin(string_view text, size_t pos) {
  if (pos == 0) return true;
  const char before = text[pos - 1];
  const char earlier = pos > 1 ? text[pos - 2] : ' ';
  // "\n" and "\t" in raw JSON.
  if (earlier == '\\' && (before == 'n' || before == 't')) return true;
  // -I/home/a/include
  if (IsLetter(before) && earlier == '-')
    return pos == 2 || !IsWordByte(text[pos - 3]);
  return !IsWordByte(before) &&
         string_view("_-.)]}/\\~*%$#").find(before) == string_view::npos;
}

// Whether a path goes on behind the byte at `i`, which few paths hold: the word
// behind it, or behind a blank one of the next three, has a separator behind a
// name, or an extension.
bool GoesOn(string_view text, size_t i, int words = 3) {
  // No name is longer; texts may be, and are read here again and again.
  constexpr size_t kLongestName = 256;
  text = text.substr(0, i + words * kLongestName);
  size_t end = i + 1;
  while (end < text.size() && text[end] != ' ' && !EndsPath(text[end])) ++end;
  const string_view word = text.substr(i + 1, end - i - 1);
  if (word.empty() || word[0] == '-' || word[0] == '~') return false;
  if (word.find("://") != string_view::npos) return false;
  if (word.size() > 2 && word[1] == ':' && IsSeparator(word[2])) return false;
  size_t at = 0;
  while (at < word.size() && IsPathByte(word[at])) ++at;
  if (at == 0) return false;
  if (text[i] == '(' && at < word.size() && word[at] == ')') ++at;
  if (at < word.size() && IsSeparator(word[at])) return true;
  if (text[i] != ' ') return false;
  if (!ExtensionOf(word.substr(0, at)).empty()) return true;
  return at == word.size() && end < text.size() && text[end] == ' ' &&
         words > 1 && GoesOn(text, end, words - 1);
}

size_t PathEnd(string_view text, size_t begin) {
  size_t name = begin;  // where the last name begins
  size_t i = begin;
  for (int open = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (IsSeparator(c)) {
      // "a=/b", where another one begins, so that none is read twice.
      if (i > begin && i > name && MayBegin(text, i)) break;
      name = i + 1;
    } else if (c == ')' && open > 0) {
      --open;
    } else if (!IsPathByte(c)) {
      if (EndsPath(c) || !GoesOn(text, i) ||
          !ExtensionOf(text.substr(name, i - name)).empty())
        break;
      open += c == '(';
    }
  }
  // A full stop ends a sentence, a backslash escapes the quote behind it.
  while (i > begin + 1 && (text[i - 1] == '.' || text[i - 1] == '\\')) --i;
  return i;
}

std::string Canonical(string_view path) {
  std::string out;
  for (const char c : path) {
    if (!IsSeparator(c)) {
      out += c;
    } else if (out.empty() || out.back() != '/') {
      out += '/';
    }
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  while (out.starts_with("./")) out.erase(0, 2);
  return out;
}

std::vector<string_view> NamesOf(string_view canonical) {
  std::vector<string_view> names;
  for (size_t pos = 0; pos <= canonical.size();) {
    const size_t end = std::min(canonical.find('/', pos), canonical.size());
    if (end > pos) names.push_back(canonical.substr(pos, end - pos));
    pos = end + 1;
  }
  return names;
}

// "/opt/rocm" of "/opt/rocm-6.2".
string_view WithoutVersion(string_view folder) {
  return folder.substr(0, folder.find_last_not_of("-.0123456789") + 1);
}

bool IsHomes(string_view name) {
  return name == "home" || name == "Users" || name == "users";
}

// A path that begins with a slash, of which only some are file paths.
std::optional<FoundPath> RootedAt(string_view text, size_t pos) {
  size_t first = pos;
  while (first < text.size() && IsSeparator(text[first])) ++first;
  if (first == text.size() || !IsPathByte(text[first])) return std::nullopt;
  FoundPath path;
  path.end = PathEnd(text, pos);
  path.canonical = Canonical(text.substr(pos, path.end - pos));
  const auto names = NamesOf(path.canonical);
  const bool is_file = !ExtensionOf(path.canonical).empty();
  if (names.empty() || (names.size() < 2 && !is_file)) return std::nullopt;
  const bool has_home = std::any_of(names.begin(), names.end() - 1, IsHomes);
  path.certain = is_file || has_home || IsOneOf(kRoots, names[0]);
  return path;
}

FoundPath Certain(string_view text, size_t pos, size_t end) {
  return FoundPath{end, Canonical(text.substr(pos, end - pos)), true};
}

// \\server\share
std::optional<FoundPath> ServerAt(string_view text, size_t pos) {
  size_t name = pos;
  while (name < text.size() && text[name] == '\\') ++name;
  if (name - pos < 2 || name == text.size() || !IsWordByte(text[name]))
    return std::nullopt;
  FoundPath path = Certain(text, pos, PathEnd(text, pos));
  path.canonical.insert(0, "/");
  if (NamesOf(path.canonical).size() < 2) return std::nullopt;
  return path;
}

// ~/x and ~alice/x; "~" alone or before a name is a destructor.
std::optional<FoundPath> HomeAt(string_view text, size_t pos) {
  if (pos > 0 && text[pos - 1] == ':') return std::nullopt;
  size_t i = pos + 1;
  while (i < text.size() && (IsWordByte(text[i]) || text[i] == '_' ||
                             text[i] == '-' || text[i] == '.'))
    ++i;
  if (i + 1 >= text.size() || !IsSeparator(text[i]) || !IsPathByte(text[i + 1]))
    return std::nullopt;
  return Certain(text, pos, PathEnd(text, pos));
}

// ./x and ../x
std::optional<FoundPath> RelativeAt(string_view text, size_t pos) {
  size_t i = pos + 1;
  if (i < text.size() && text[i] == '.') ++i;
  if (i + 1 >= text.size() || !IsSeparator(text[i]) || !IsPathByte(text[i + 1]))
    return std::nullopt;
  return Certain(text, pos, PathEnd(text, pos));
}

}  // namespace

std::optional<FoundPath> PathAt(string_view text, size_t pos) {
  const char c = text[pos];
  const char next = pos + 1 < text.size() ? text[pos + 1] : ' ';
  const bool drive = IsLetter(c) && next == ':' && pos + 3 < text.size() &&
                     IsSeparator(text[pos + 2]) &&
                     (IsPathByte(text[pos + 3]) || IsSeparator(text[pos + 3]));
  if (!drive && c != '/' && c != '\\' && c != '~' && c != '.')
    return std::nullopt;
  if (!MayBegin(text, pos)) return std::nullopt;
  if (drive) {
    // A scheme and an authority are no drive.
    if (text.substr(pos + 2, 2) == "//") return std::nullopt;
    return Certain(text, pos, PathEnd(text, pos + 2));
  }
  if (c == '/' || (c == '\\' && next == '/')) return RootedAt(text, pos);
  if (c == '\\') return ServerAt(text, pos);
  return c == '~' ? HomeAt(text, pos) : RelativeAt(text, pos);
}

string_view RootOf(string_view canonical) {
  if (canonical.size() < 2 || canonical[0] != '/' || canonical[1] == '/')
    return {};
  return canonical.substr(0, canonical.find('/', 1));
}

std::vector<string_view> UsersOf(string_view canonical) {
  constexpr string_view kInductor = "torchinductor_";
  std::vector<string_view> users;
  const auto names = NamesOf(canonical);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && IsHomes(names[i - 1])) users.push_back(names[i]);
    if (names[i].starts_with(kInductor))
      users.push_back(names[i].substr(kInductor.size()));
  }
  if (canonical.starts_with('~') && names[0].size() > 1)
    users.push_back(names[0].substr(1));
  return users;
}

size_t PublicPart(string_view canonical) {
  size_t begin = canonical.size();
  bool is_public = false;
  string_view before;
  for (const string_view name : NamesOf(canonical)) {
    const auto end =
        static_cast<size_t>(name.data() + name.size() - canonical.data());
    // Long ones are none, and there may be many.
    const string_view folder =
        end < 40 ? canonical.substr(0, end) : string_view();
    is_public |= IsOneOf(kPublicFolders, folder) ||
                 IsOneOf(kPublicFolders, WithoutVersion(folder));
    if (IsHomes(name)) is_public = false;
    if (name == "site-packages" || name == "dist-packages" ||
        (before == "lib" && name.starts_with("python3")))
      begin = std::min(end + 1, canonical.size());
    before = name;
  }
  return is_public ? 0 : begin;
}

string_view ExtensionOf(string_view path) {
  const size_t slash = path.find_last_of("/\\");
  const string_view name =
      slash == string_view::npos ? path : path.substr(slash + 1);
  const size_t library = name.find(".so.");
  if (library != string_view::npos && library > 0) return ".so";
  size_t begin = name.size();
  for (;;) {
    const size_t dot = name.substr(0, begin).rfind('.');
    if (dot == string_view::npos || dot == 0 ||
        !IsOneOf(kExtensions, name.substr(dot + 1, begin - dot - 1)))
      return name.substr(begin);
    begin = dot;
  }
}

}  // namespace lamina::render
