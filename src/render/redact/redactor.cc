// SPDX-License-Identifier: Apache-2.0

#include "render/redact/redactor.h"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>
#include <set>

#include "render/redact/paths.h"
#include "render/redact/token_key.h"

namespace lamina::render {

namespace {

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

uint64_t HashOf(const HashKey& key, std::string_view text) {
  static_assert(sizeof(HashKey) == crypto_shorthash_KEYBYTES);
  static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES);
  uint64_t hash = 0;
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash), BytesOf(text),
                   text.size(),
                   reinterpret_cast<const unsigned char*>(key.data()));
  return hash;
}

KeyMaker::KeyMaker() {
  static const int ready = sodium_init();  // picks the fastest code
  (void)ready;
  crypto_generichash_init(&state_, nullptr, 0, sizeof(HashKey));
}

void KeyMaker::Add(std::string_view bytes) {
  const uint64_t size = bytes.size();
  crypto_generichash_update(
      &state_, reinterpret_cast<const unsigned char*>(&size), sizeof size);
  crypto_generichash_update(&state_, BytesOf(bytes), bytes.size());
}

HashKey KeyMaker::Finish() {
  HashKey key{};
  crypto_generichash_final(
      &state_, reinterpret_cast<unsigned char*>(key.data()), sizeof key);
  return key;
}

namespace {

using std::string_view;

std::string LowerCase(string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

size_t WordEnd(string_view text, size_t pos) {
  while (pos < text.size() && IsWordByte(text[pos])) ++pos;
  return pos;
}

bool BeginsWord(string_view text, size_t pos) {
  return IsWordByte(text[pos]) && (pos == 0 || !IsWordByte(text[pos - 1]));
}

// The size of "https://" at `pos`; 0 when no scheme stands there.
size_t SchemeAt(string_view text, size_t pos) {
  constexpr size_t kLongestScheme = 16;
  text = text.substr(0, pos + kLongestScheme + 3);
  size_t i = pos;
  while (i < text.size() && (IsWordByte(text[i]) || text[i] == '+' ||
                             text[i] == '.' || text[i] == '-'))
    ++i;
  return text.substr(i, 3) == "://" ? i + 3 - pos : 0;
}

// The parts of a URL behind its scheme.
struct Url {
  string_view account, host, port, rest;
  size_t end = 0;
};

Url UrlAt(string_view text, size_t pos) {
  Url url;
  url.end = pos;
  const auto ends = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' ||
           string_view("\"'`<>|\\(){}").find(c) != string_view::npos;
  };
  while (url.end < text.size() && !ends(text[url.end])) ++url.end;
  string_view all = text.substr(pos, url.end - pos);
  const size_t path = std::min(all.find_first_of("/?#"), all.size());
  url.rest = all.substr(path);
  all = all.substr(0, path);
  if (const size_t at = all.rfind('@'); at != string_view::npos) {
    url.account = all.substr(0, at);
    all.remove_prefix(at + 1);
  }
  const size_t port = all.rfind(':');
  const bool has_port =
      port != string_view::npos &&
      all.find_first_not_of("0123456789", port + 1) == string_view::npos;
  url.host = all.substr(0, has_port ? port : all.size());
  url.port = has_port ? all.substr(port) : string_view();
  return url;
}

}  // namespace

Redactor::Redactor(const Secrets& secrets)
    : patterns_(secrets.patterns != nullptr ? secrets.patterns
                                            : rules::SecretTable::BuiltIn()),
      key_(secrets.key) {
  for (const std::string& host : secrets.hosts) Add(NameKind::kHost, host);
  for (const std::string& user : secrets.users) Add(NameKind::kUser, user);
  for (const std::string& key : secrets.keys) Add(NameKind::kSecret, key);
}

void Redactor::Add(NameKind kind, string_view name) {
  if (!name.empty() && !IsSharedName(name))
    found_.try_emplace(std::string(name), kind);
}

void Redactor::LearnPath(string_view canonical, bool certain) {
  const string_view root = RootOf(canonical);
  if (certain && !root.empty()) roots_.emplace(root);
  for (const string_view user : UsersOf(canonical)) Add(NameKind::kUser, user);
  if (canonical.starts_with("//"))
    Add(NameKind::kHost, canonical.substr(2, canonical.find('/', 2) - 2));
}

void Redactor::Learn(string_view text) {
  key_maker_.Add(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t scheme = BeginsWord(text, i) ? SchemeAt(text, i) : 0;
    if (scheme > 0) {
      const Url url = UrlAt(text, i + scheme);
      Add(NameKind::kHost, url.host);
      Add(NameKind::kUser, url.account.substr(0, url.account.find(':')));
      i += scheme;
      if (i >= text.size()) break;
    }
    // The path of file:///x begins behind two slashes.
    const size_t from = scheme > 0 ? i : 0;
    const auto path = PathAt(text.substr(from), i - from);
    if (!path) continue;
    LearnPath(path->canonical, path->certain);
    i = from + path->end - 1;
  }
  FindNames(text, [&](NameKind kind, string_view name) { Add(kind, name); });
  for (const rules::SecretSpan& span : patterns_->Find(text)) {
    const string_view found = text.substr(span.begin, span.end - span.begin);
    // A short key is a word of other texts, too.
    constexpr size_t kShortKey = 8;
    if (span.kind == rules::SecretKind::kUser) Add(NameKind::kUser, found);
    if (span.kind == rules::SecretKind::kHost) Add(NameKind::kHost, found);
    if (span.kind == rules::SecretKind::kSecret && found.size() >= kShortKey)
      Add(NameKind::kSecret, found);
  }
}

void Redactor::LearnFile(const std::string& path) {
  Learn(path);
  files_.push_back(path);
}

void Redactor::AddName(string_view name, std::string token) {
  size_t begin = 0;
  while (begin < name.size() && !IsWordByte(name[begin])) ++begin;
  if (begin == name.size()) return;
  std::string text = LowerCase(name.substr(begin));
  auto& same = names_[text.substr(0, WordEnd(text, 0))];
  for (const Name& other : same)
    if (other.text == text) return;
  longest_ = std::max(longest_, text.size());
  same.push_back({std::move(text), std::move(token)});
}

void Redactor::Ready() {
  if (key_ == HashKey{}) key_ = key_maker_.Finish();
  // In the order of the names, so that the first of two that share a short
  // name is always the same.
  const std::set<std::pair<std::string, NameKind>> sorted(found_.begin(),
                                                          found_.end());
  for (const auto& [name, kind] : sorted) {
    if (IsCommonWord(name)) {
      ++common_;
      continue;
    }
    AddName(name, kind == NameKind::kSecret ? Token("secret", name)
                  : kind == NameKind::kUser ? Token("user", LowerCase(name))
                                            : HostToken(name));
  }
  for (const auto& [name, kind] : sorted) {
    const std::string first = name.substr(0, name.find('.'));
    if (kind == NameKind::kHost && !IsCommonWord(first))
      AddName(first, HostToken(name));
  }
  for (const std::string& file : files_) {
    const std::string base = file.substr(file.find_last_of('/') + 1);
    for (const std::string& name : {file, base}) {
      if (name.find('.') != std::string::npos ||
          name.find('/') != std::string::npos)
        AddName(name, FileToken(name));
    }
  }
  for (auto& [word, same] : names_) {
    std::sort(same.begin(), same.end(), [](const Name& a, const Name& b) {
      return std::pair(b.text.size(), a.text) <
             std::pair(a.text.size(), b.text);
    });
  }
}

std::string Redactor::Token(string_view kind, string_view text) const {
  const auto hash = static_cast<uint32_t>(
      HashOf(key_, fmt::format("{} {}", kind, text)) >> 32);
  return fmt::format("{}-{:08x}", kind, hash);
}

std::string Redactor::HostToken(string_view host) const {
  return Token("host", LowerCase(host));
}

void Redactor::Show(const std::string& token, std::string& out) {
  shown_.insert(token);
  out += token;
}

std::string Redactor::PathToken(string_view canonical) const {
  const string_view extension = ExtensionOf(canonical);
  if (extension.empty()) return Token("path", canonical);
  const size_t slash = canonical.rfind('/');
  const std::string file = Token(
      "file", canonical.substr(slash == string_view::npos ? 0 : slash + 1));
  std::string out;
  if (slash != string_view::npos)
    out = Token("path", canonical.substr(0, slash)) + "/";
  return out + file + std::string(extension);
}

std::string Redactor::FileToken(const std::string& path) const {
  if (path.empty() || path == "-") return path;
  const auto found = PathAt(path, 0);
  return PathToken(found && found->end == path.size() ? found->canonical
                                                      : path);
}

std::string Redactor::ApplyFile(const std::string& path) {
  std::string out;
  Show(FileToken(path), out);
  return out;
}

const Redactor::Name* Redactor::NameAt(string_view text, size_t pos) const {
  const size_t word = WordEnd(text, pos);
  const auto it = names_.find(LowerCase(text.substr(pos, word - pos)));
  if (it == names_.end()) return nullptr;
  for (const Name& name : it->second) {
    const size_t end = pos + name.text.size();
    if (end > text.size() || (end < text.size() && IsWordByte(text[end]) &&
                              IsWordByte(name.text.back())))
      continue;
    if (LowerCase(text.substr(pos, name.text.size())) == name.text)
      return &name;
  }
  return nullptr;
}

size_t Redactor::CutNameAt(string_view text, size_t pos) const {
  constexpr string_view kCut = "...";
  if (!text.ends_with(kCut) || pos + kCut.size() >= text.size()) return 0;
  const size_t size = text.size() - kCut.size() - pos;
  if (size > longest_) return 0;
  const std::string rest = LowerCase(text.substr(pos, size));
  for (const auto& [word, same] : names_) {
    for (const Name& name : same)
      if (name.text.starts_with(rest)) return size;
  }
  return 0;
}

size_t Redactor::AppendNameOrWord(string_view text, size_t pos,
                                  std::string& out) {
  if (!BeginsWord(text, pos)) {
    out += text[pos];
    return pos + 1;
  }
  if (const Name* name = NameAt(text, pos)) {
    Show(name->token, out);
    return pos + name->text.size();
  }
  if (const size_t cut = CutNameAt(text, pos); cut > 0) return pos + cut;
  const size_t end = WordEnd(text, pos);
  out += text.substr(pos, end - pos);
  return end;
}

size_t Redactor::ReplaceUrl(string_view text, size_t pos, std::string& out) {
  const size_t scheme = SchemeAt(text, pos);
  if (scheme == 0) return pos;
  const Url url = UrlAt(text, pos + scheme);
  out += text.substr(pos, scheme);
  if (url.host.empty() && !url.rest.empty()) {
    const size_t size = ReplacePath(text.substr(pos + scheme), 0, out);
    if (size > 0) return pos + scheme + size;
  }
  if (!url.account.empty()) {
    Show(Token("user", LowerCase(url.account)), out);
    out += '@';
  }
  if (!url.host.empty() && IsCommonWord(url.host)) {
    out += url.host;
  } else if (!url.host.empty()) {
    Show(HostToken(url.host), out);
  }
  out += url.port;
  if (url.rest.size() > 1) {
    if (!url.host.empty()) out += '/';
    Show(PathToken(url.rest), out);
  }
  return url.end;
}

size_t Redactor::ReplacePath(string_view text, size_t pos, std::string& out) {
  const auto path = PathAt(text, pos);
  if (!path) return pos;
  const std::string& all = path->canonical;
  if (!path->certain && !roots_.contains(std::string(RootOf(all)))) return pos;
  const size_t known = PublicPart(all);
  if (known > 0) {
    Show(PathToken(known < all.size() ? string_view(all).substr(0, known - 1)
                                      : string_view(all)),
         out);
    if (known < all.size()) out += '/';
  }
  const string_view rest = string_view(all).substr(known);
  for (size_t i = 0; i < rest.size();) i = AppendNameOrWord(rest, i, out);
  return path->end;
}

std::string Redactor::Apply(string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (const rules::SecretSpan& span : patterns_->Find(text)) {
    // Users and hosts were learned, and are found with what is around them.
    if (span.kind == rules::SecretKind::kUser ||
        span.kind == rules::SecretKind::kHost || span.begin < done)
      continue;
    ApplyTo(text.substr(done, span.begin - done), out);
    const string_view found = text.substr(span.begin, span.end - span.begin);
    Show(
        Token(span.kind == rules::SecretKind::kPath ? "path" : "secret", found),
        out);
    done = span.end;
  }
  ApplyTo(text.substr(done), out);
  return out;
}

void Redactor::ApplyTo(string_view text, std::string& out) {
  for (size_t i = 0; i < text.size();) {
    size_t end = BeginsWord(text, i) ? ReplaceUrl(text, i, out) : i;
    if (end == i) end = ReplacePath(text, i, out);
    if (end == i) end = AppendNameOrWord(text, i, out);
    i = end;
  }
}

Secrets Redactor::Learned() const {
  Secrets secrets;
  const std::set<std::pair<std::string, NameKind>> sorted(found_.begin(),
                                                          found_.end());
  for (const auto& [name, kind] : sorted)
    (kind == NameKind::kHost   ? secrets.hosts
     : kind == NameKind::kUser ? secrets.users
                               : secrets.keys)
        .push_back(name);
  return secrets;
}

Redactor::Counts Redactor::counts() const {
  Counts counts;
  counts.common = common_;
  for (const std::string& token : shown_) {
    counts.hosts += token.starts_with("host-");
    counts.users += token.starts_with("user-");
    counts.keys += token.starts_with("secret-");
    counts.paths += token.starts_with("path-") || token.starts_with("file-");
  }
  return counts;
}

}  // namespace lamina::render
