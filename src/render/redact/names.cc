// SPDX-License-Identifier: Apache-2.0
#include "render/redact/names.h"

#include <algorithm>
#include <arpa/inet.h>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "render/redact/paths.h"

namespace lamina::render {
namespace {

using std::string_view;

// Lists of words, each between blanks: accounts and hosts that every machine
// has, and words that stand in names of ops, kernels and modules.
constexpr string_view kSharedNames =
    " admin administrator anaconda app apps appuser azureuser centos codespace "
    "coder colab conda content daemon debian default docker ec2-user fedora "
    "guest home jovyan jupyter local localhost login nobody none public root "
    "runner service shared ubuntu user users vscode ";
constexpr string_view kCommonWords =
    " activation adam add all any arange attention attn average backward base "
    "batch bias block build busy cast cat cell chunk clamp code comm compute "
    "concat conv copy core cos cub cuda cutlass cpu data dataset datasets "
    "decode decoder dense dev device div dot dropout embed embedding empty "
    "encoder exp experiments fill flash flow forward frame gather gelu gemm "
    "gpu graph grid group hdd head hip host hpc idle index init input job jobs "
    "kernel kernels launch layer layers linear log loss main mask master "
    "matmul max mean mem memory min mlp mode model models module mul name "
    "native nccl ncu net network nodes node norm null nvidia one ops output "
    "param pool prefill process prod profile proj project projects pytorch "
    "queue rand rank ranks rccl reduce relu repo reshape research rocm rope "
    "router run runs sample scan scatter self serve server sin slice softmax "
    "sort split src stack stage start step steps stream sub sum table task "
    "team tensor test tests thread time tmp token tokens torch trace train "
    "trainer training transpose triton true type unknown update value vector "
    "view weight window work worker workers workspace xla zero ";

// Last labels of full names of hosts. Names of code end in some of them, too
// ("model.net"): those need a hyphen, which no name of code has.
constexpr string_view kSureDomains =
    " com corp edu gov internal lan localdomain ";
constexpr string_view kOtherDomains =
    " ai at au be br ca ch cloud cluster cn cz de dev es eu fi fr in intra "
    "intranet io it jp kr local net nl no org pl ru se sg tw uk us ";

// Ends of keys whose values are versions, "9.8.0.38", and no addresses.
constexpr string_view kVersionKeys[] = {"version", "ver", "v", "release"};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
template <typename Is>
size_t RunEnd(string_view text, size_t i, const Is& is) {
  while (i < text.size() && is(text[i])) ++i;
  return i;
}

bool IsHostByte(char c) {
  return (IsWordByte(c) && static_cast<unsigned char>(c) < 0x80) || c == '-' ||
         c == '.';
}
bool IsUserByte(char c) { return IsHostByte(c) || c == '_'; }

string_view WithoutEnd(string_view text, string_view bytes) {
  return text.substr(0, text.find_last_not_of(bytes) + 1);
}

// An address that is the same on every machine says nothing.
bool IsAddress4(const std::string& text) {
  in_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 &&
         !text.starts_with("127.") && !text.starts_with("0.") &&
         !text.starts_with("255.");
}

// "c10::add" is an address by its grammar: some groups must stand alone, or the
// first one be that of a network.
bool IsAddress6(const std::string& text) {
  in6_addr address;
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return false;
  size_t groups = 0;
  for (size_t i = 0; i < text.size(); ++i)
    groups += text[i] != ':' && (i == 0 || text[i - 1] == ':');
  const uint8_t first = address.s6_addr[0];
  const bool network = first == 0xFE || (first & 0xFE) == 0xFC ||
                       (first >= 0x20 && first < 0x40);
  return groups >= 4 || (network && text.find(':') == 4);
}

// The labels of a name, or nothing when it is no name of a host.
std::vector<string_view> LabelsOf(string_view name) {
  std::vector<string_view> labels;
  for (size_t pos = 0; pos <= name.size();) {
    const size_t end = std::min(name.find('.', pos), name.size());
    const string_view label = name.substr(pos, end - pos);
    if (label.empty() || label.size() > 63 || label.front() == '-' ||
        label.back() == '-')
      return {};
    labels.push_back(label);
    pos = end + 1;
  }
  return labels;
}

bool IsFullHostName(string_view name) {
  const auto labels = LabelsOf(name);
  if (labels.size() < 3) return false;
  const bool hyphen = name.find('-') != string_view::npos;
  const std::string last = LowerCase(labels.back());
  const bool mixed =
      std::any_of(labels.begin(), labels.end(), [](string_view label) {
        return std::any_of(label.begin(), label.end(), IsDigit) &&
               !std::all_of(label.begin(), label.end(), IsDigit);
      });
  if (name.ends_with(".cluster.local")) return true;
  return IsOneOf(kSureDomains, last) ? hyphen || mixed
                                     : hyphen && IsOneOf(kOtherDomains, last);
}

// What a key names: "user" of "SLURM_JOB_USER".
std::optional<NameKind> KindOfKey(string_view key) {
  const std::string lower = LowerCase(key);
  for (const string_view user :
       {"user", "username", "user_name", "login", "logname"}) {
    if (lower.ends_with(user) && (lower.size() == user.size() ||
                                  lower[lower.size() - user.size() - 1] == '_'))
      return NameKind::kUser;
  }
  for (const string_view host :
       {"host", "hostname", "host_name", "nodename", "node_name",
        "computername", "computer_name"}) {
    if (lower.ends_with(host) && (lower.size() == host.size() ||
                                  lower[lower.size() - host.size() - 1] == '_'))
      return NameKind::kHost;
  }
  return std::nullopt;
}

// The value behind a key that ends at `i`: key=value, "key": "value", also with
// escaped quotes.
string_view ValueBehind(string_view text, size_t i) {
  const auto is_quote = [](char c) {
    return c == '"' || c == '\'' || c == '\\';
  };
  const size_t quote = RunEnd(text, i, is_quote);
  if (quote >= text.size()) return {};
  const char delimiter = text[quote];
  if (delimiter != '=' && (delimiter != ':' || quote == i)) return {};
  const size_t blank = RunEnd(text, quote + 1, [](char c) { return c == ' '; });
  const size_t begin = RunEnd(text, blank, is_quote);
  const size_t end = RunEnd(text, begin, IsUserByte);
  return WithoutEnd(text.substr(begin, end - begin), ".-");
}

// "cudnn_version" and "cudnnVersion", but not "conversion".
bool IsKeyOfVersion(string_view key) {
  const std::string lower = LowerCase(key);
  return std::any_of(std::begin(kVersionKeys), std::end(kVersionKeys),
                     [&](string_view name) {
                       if (!lower.ends_with(name)) return false;
                       const size_t at = key.size() - name.size();
                       return at == 0 || !IsLetter(key[at - 1]) ||
                              (IsUpper(key[at]) && !IsUpper(key[at - 1]));
                     });
}

// Whether what stands in front says that numbers are a version: "version 9.8",
// "cudnn_version": "9.8", "cublas==12.8".
bool IsVersion(string_view text, size_t begin) {
  constexpr size_t kLongestKey = 40;
  const size_t from = begin - std::min(begin, kLongestKey);
  const string_view front = text.substr(from, begin - from);
  const string_view before = WithoutEnd(front, " :=\"'\\");
  const string_view between = front.substr(before.size());
  if (between.empty() || between == "==") return !between.empty();
  size_t word = before.size();
  while (word > 0 && (IsWordByte(before[word - 1]) || before[word - 1] == '_'))
    --word;
  return IsKeyOfVersion(before.substr(word));
}

// user@host, at the word that ends at `i`.
void SeeAccount(string_view text, size_t begin, size_t i,
                const NameSeen& seen) {
  const size_t end = RunEnd(text, i + 1, IsHostByte);
  if (end < text.size() && text[end] == '_') return;
  const string_view host = WithoutEnd(text.substr(i + 1, end - i - 1), ".-");
  if (LabelsOf(host).empty()) return;
  if (!IsAddress4(std::string(host))) {
    // "malloc@plt" is a symbol, "torch@v2.1" a version, "f@0x12" a place.
    const bool is_symbol =
        host.find_first_of("0123456789-.") == string_view::npos;
    const bool is_version =
        host.find_first_not_of("0123456789.", 1) == string_view::npos;
    if (is_symbol || IsDigit(host[0]) || (host[0] == 'v' && is_version)) return;
  }
  seen(NameKind::kUser, text.substr(begin, i - begin));
  seen(NameKind::kHost, host);
}

// Names that the word at `i` is or is the key of.
void SeeWord(string_view text, size_t i, const NameSeen& seen) {
  const size_t word = RunEnd(text, i, IsUserByte);
  const size_t host = RunEnd(text, i, IsHostByte);
  if (word < text.size() && text[word] == '@') {
    SeeAccount(text, i, word, seen);
  } else if (const string_view value = ValueBehind(text, word);
             !value.empty()) {
    if (const auto kind = KindOfKey(text.substr(i, word - i)))
      seen(*kind, value);
  }
  const string_view name = WithoutEnd(text.substr(i, host - i), ".-");
  if (std::count(name.begin(), name.end(), '.') > 1 &&
      (IsFullHostName(name) ||
       (IsAddress4(std::string(name)) && !IsVersion(text, i))))
    seen(NameKind::kHost, name);
  // Names that clouds give: ip-10-0-0-12.
  if (name.starts_with("ip-") &&
      std::count_if(name.begin(), name.end(), IsDigit) > 3)
    seen(NameKind::kHost, name);
}

void SeeAddress6(string_view text, size_t i, const NameSeen& seen) {
  constexpr size_t kLongest = 45;
  text = text.substr(0, i + kLongest + 1);
  const size_t end = RunEnd(text, i, [](char c) {
    return IsDigit(c) || c == ':' ||
           (LowerCase(c) >= 'a' && LowerCase(c) <= 'f');
  });
  if (end < text.size() && IsWordByte(text[end])) return;
  string_view name = text.substr(i, end - i);
  if (std::count(name.begin(), name.end(), ':') < 2) return;
  if (name.ends_with(':') && !name.ends_with("::")) name.remove_suffix(1);
  if (IsAddress6(std::string(name))) seen(NameKind::kHost, name);
}

}  // namespace

void FindNames(string_view text, const NameSeen& seen) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsWordByte(text[i])) continue;
    SeeWord(text, i, seen);
    SeeAddress6(text, i, seen);
    const size_t end = RunEnd(text, i, IsUserByte);
    // An address of many groups is seen as a whole only.
    i = std::max(end, i + 1) - 1;
  }
}

bool IsSharedName(string_view name) {
  return std::all_of(name.begin(), name.end(), IsDigit) ||
         IsOneOf(kSharedNames, LowerCase(name));
}

bool IsCommonWord(string_view name) {
  return name.size() < 3 || IsSharedName(name) ||
         IsOneOf(kCommonWords, LowerCase(name));
}

}  // namespace lamina::render
