// SPDX-License-Identifier: Apache-2.0
//
// Replaces paths, keys and the names of hosts and users in texts by tokens:
//
//   /home/alice/x/model.py(12): forward
//     -> path-5bd0e5a1/file-07c1d2f4.py(12): forward
//   alice@gpu-17.acme.com -> user-81aa30c2@host-2f60cc1e
//   HF_TOKEN=hf_abcdefgh -> HF_TOKEN=secret-91ba0c77
//
// A name is often plain text in one place ("run of alice") and known by its
// form in another ("/home/alice/x"), so all texts are learned before the first
// is changed. Equal names have equal tokens. A token is a hash with a key that
// is not in the page: without it nobody can try names until the token fits.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "render/redact/names.h"
#include "render/redact/token_key.h"
#include "rules/secrets.h"

namespace lamina::render {

// What is known of the origin of some texts beside them.
struct Secrets {
  std::vector<std::string> hosts;
  std::vector<std::string> users;
  std::vector<std::string> keys;  // tokens, passwords
  // What gives a secret away; null: the patterns of the program.
  std::shared_ptr<const rules::SecretTable> patterns;
  // All zero: made from the texts.
  HashKey key{};
};

class Redactor {
 public:
  explicit Redactor(const Secrets& secrets);

  void Learn(std::string_view text);
  // Names of input files are replaced wherever they stand.
  void LearnFile(const std::string& path);
  // After the last text.
  void Ready();
  // Hosts and users that were seen so far.
  Secrets Learned() const;

  std::string Apply(std::string_view text);
  std::string ApplyFile(const std::string& path);

  // How many different ones were replaced.
  struct Counts {
    size_t paths = 0, hosts = 0, users = 0, keys = 0;
    // Names of hosts and users that are also words of the field ("max"), and
    // so stay where they are no part of a path.
    size_t common = 0;
  };
  Counts counts() const;

 private:
  struct Name {
    std::string text;  // in lower case, begins with a word
    std::string token;
  };

  void Add(NameKind kind, std::string_view name);
  // Apply() of a text between the parts that patterns found.
  void ApplyTo(std::string_view text, std::string& out);
  void AddName(std::string_view name, std::string token);
  std::string Token(std::string_view kind, std::string_view text) const;
  std::string HostToken(std::string_view host) const;
  std::string FileToken(const std::string& path) const;
  // "path-1/file-2.py" for "/home/a/x.py".
  std::string PathToken(std::string_view canonical) const;
  void LearnPath(std::string_view canonical, bool certain);
  const Name* NameAt(std::string_view text, size_t pos) const;
  // Bytes of a name whose end was cut off with the text ("run of ali...").
  size_t CutNameAt(std::string_view text, size_t pos) const;
  // Appends the token of the name at `pos`, else the word or byte there; the
  // place behind it.
  size_t AppendNameOrWord(std::string_view text, size_t pos, std::string& out);
  // Appends a token to what is shown.
  void Show(const std::string& token, std::string& out);
  // Appends what stands for the URL or path at `pos`; the place behind it, or
  // `pos` when there is none.
  size_t ReplaceUrl(std::string_view text, size_t pos, std::string& out);
  size_t ReplacePath(std::string_view text, size_t pos, std::string& out);

  std::shared_ptr<const rules::SecretTable> patterns_;
  HashKey key_;
  KeyMaker key_maker_;
  TextMap<NameKind> found_;  // hosts, users, keys
  std::vector<std::string> files_;
  absl::flat_hash_set<std::string> roots_;  // of paths: "/acme"
  TextMap<std::vector<Name>> names_;  // by their first word, longest first
  absl::flat_hash_set<std::string> shown_;  // tokens
  size_t longest_ = 0;                      // name
  size_t common_ = 0;
};

}  // namespace lamina::render
