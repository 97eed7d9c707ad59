// SPDX-License-Identifier: Apache-2.0
//
// Functions of SQLite that take longer than their arguments are long, made
// anew: a limit of time is looked at between the steps of a query, never inside
// of a function. instr, replace and trim are linear here; LIKE and GLOB refuse
// what would take seconds, printf a width beyond what a text may hold. Answers
// are those of SQLite 3.40 (func.c).
#include <absl/container/flat_hash_set.h>
#include <charconv>
#include <cstring>
#include <map>
#include <sqlite3.h>

#include "sql/impl.h"

namespace lamina::sql {
namespace {

// Steps of a pattern along a text: some seconds.
constexpr size_t kMostSteps = size_t{4} << 30;

std::string_view TextOf(sqlite3_value* value) {
  const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_value_bytes(value))};
}

std::string_view BytesOf(sqlite3_value* value) {
  const auto* data = static_cast<const char*>(sqlite3_value_blob(value));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_value_bytes(value))};
}

bool AnyNull(int count, sqlite3_value** values) {
  for (int i = 0; i < count; ++i) {
    if (sqlite3_value_type(values[i]) == SQLITE_NULL) return true;
  }
  return false;
}

size_t LongestText(sqlite3_context* context) {
  return static_cast<size_t>(sqlite3_limit(sqlite3_context_db_handle(context),
                                           SQLITE_LIMIT_LENGTH, -1));
}

// Where `what` begins in `text`, from `from` on. The C library's search is
// linear in both.
size_t Find(std::string_view text, std::string_view what, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* const at = ::memmem(text.data() + from, text.size() - from,
                                  what.data(), what.size());
  return at == nullptr
             ? std::string_view::npos
             : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

bool IsInsideOfCharacter(char byte) {
  constexpr unsigned kMask = 0xC0, kInside = 0x80;
  return (static_cast<unsigned char>(byte) & kMask) == kInside;
}

void Instr(sqlite3_context* context, int count, sqlite3_value** values) {
  if (AnyNull(count, values)) return;
  const bool blobs = sqlite3_value_type(values[0]) == SQLITE_BLOB &&
                     sqlite3_value_type(values[1]) == SQLITE_BLOB;
  const std::string_view text = blobs ? BytesOf(values[0]) : TextOf(values[0]);
  const std::string_view what = blobs ? BytesOf(values[1]) : TextOf(values[1]);
  if (what.empty()) return sqlite3_result_int(context, 1);
  size_t at = Find(text, what, 0);
  while (!blobs && at != std::string_view::npos &&
         IsInsideOfCharacter(text[at]))
    at = Find(text, what, at + 1);
  if (at == std::string_view::npos) return sqlite3_result_int(context, 0);
  auto place = static_cast<int64_t>(at);
  if (!blobs) {
    place -=
        std::count_if(text.begin(), text.begin() + static_cast<ptrdiff_t>(at),
                      &IsInsideOfCharacter);
  }
  sqlite3_result_int64(context, place + 1);
}

void Replace(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  if (AnyNull(2, values)) return;
  const std::string_view text = TextOf(values[0]), what = TextOf(values[1]);
  if (what.empty()) return sqlite3_result_value(context, values[0]);
  if (AnyNull(1, values + 2)) return;
  const std::string_view by = TextOf(values[2]);
  const size_t longest = LongestText(context);
  std::string out;
  size_t from = 0;
  for (size_t at = Find(text, what, 0); at != std::string_view::npos;
       at = Find(text, what, from)) {
    out.append(text.substr(from, at - from)).append(by);
    if (out.size() > longest) return sqlite3_result_error_toobig(context);
    from = at + what.size();
  }
  out.append(text.substr(from));
  sqlite3_result_text64(context, out.data(), out.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}

// The characters of a text: a byte that begins one, and those inside of it.
std::vector<std::string_view> CharactersOf(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    constexpr unsigned char kFirstOfMany = 0xC0;
    if (static_cast<unsigned char>(text[i]) >= kFirstOfMany) {
      while (end < text.size() && IsInsideOfCharacter(text[end])) ++end;
    }
    out.push_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

enum Ends { kLeft = 1, kRight = 2 };

template <int kEnds>
void Trim(sqlite3_context* context, int count, sqlite3_value** values) {
  if (AnyNull(count, values)) return;
  std::string_view text = TextOf(values[0]);
  absl::flat_hash_set<std::string_view> away = {" "};
  size_t longest = 1;
  if (count == 2) {
    away.clear();
    longest = 0;
    for (const std::string_view one : CharactersOf(TextOf(values[1]))) {
      away.insert(one);
      longest = std::max(longest, one.size());
    }
  }
  // Characters are of a few bytes, so of each length that there is one is
  // looked up.
  constexpr size_t kLongest = 4;
  longest = std::min(longest, kLongest);
  const auto shorter_by = [&](const auto& piece_of) {
    for (size_t n = longest; n > 0; --n) {
      if (n <= text.size() && away.contains(piece_of(n))) return n;
    }
    return size_t{0};
  };
  if constexpr ((kEnds & kLeft) != 0) {
    while (const size_t n =
               shorter_by([&](size_t bytes) { return text.substr(0, bytes); }))
      text.remove_prefix(n);
  }
  if constexpr ((kEnds & kRight) != 0) {
    while (const size_t n = shorter_by(
               [&](size_t bytes) { return text.substr(text.size() - bytes); }))
      text.remove_suffix(n);
  }
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
}

// like(PATTERN, TEXT[, ESCAPE]) and glob(PATTERN, TEXT).
template <bool kGlob>
void Match(sqlite3_context* context, int count, sqlite3_value** values) {
  static const bool blobs_match =
      sqlite3_compileoption_used("LIKE_DOESNT_MATCH_BLOBS") == 0;
  if (!blobs_match && (sqlite3_value_type(values[0]) == SQLITE_BLOB ||
                       sqlite3_value_type(values[1]) == SQLITE_BLOB))
    return sqlite3_result_int(context, 0);
  const std::string_view pattern = TextOf(values[0]), text = TextOf(values[1]);
  const auto most =
      static_cast<size_t>(sqlite3_limit(sqlite3_context_db_handle(context),
                                        SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1));
  if (pattern.size() > most) {
    return sqlite3_result_error(context, "LIKE or GLOB pattern too complex",
                                -1);
  }
  unsigned int escape = 0;
  if (count == 3) {
    const auto characters = CharactersOf(TextOf(values[2]));
    if (AnyNull(1, values + 2)) return;
    if (characters.size() != 1) {
      return sqlite3_result_error(
          context, "ESCAPE expression must be a single character", -1);
    }
    // One byte is what sqlite3_strlike() and people take.
    if (characters[0].size() != 1) {
      return sqlite3_result_error(
          context, "ESCAPE expression must be a character of ASCII", -1);
    }
    escape = static_cast<unsigned char>(characters[0][0]);
  }
  if (AnyNull(2, values)) return;
  if (text.size() > kMostSteps / std::max<size_t>(1, pattern.size())) {
    return sqlite3_result_error(context,
                                "LIKE or GLOB of a pattern of this length "
                                "along a text of this length takes too long",
                                -1);
  }
  // They end at a zero; a text may hold one.
  const int differs =
      kGlob ? sqlite3_strglob(pattern.data(), text.data())
            : sqlite3_strlike(pattern.data(), text.data(), escape);
  sqlite3_result_int(context, differs == 0);
}

// printf() of a second connection, which nobody else has.
class Printer {
 public:
  ~Printer() {
    for (const auto& [count, statement] : statements_)
      sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

  void Print(sqlite3_context* context, int count, sqlite3_value** values) {
    const size_t longest = LongestText(context);
    if (count > 0 && AsksForMore(count, values, longest))
      return sqlite3_result_error_toobig(context);
    sqlite3_stmt* const statement = StatementOf(count);
    if (statement == nullptr) return sqlite3_result_error_nomem(context);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, static_cast<int>(longest));
    for (int i = 0; i < count; ++i)
      sqlite3_bind_value(statement, i + 1, values[i]);
    if (sqlite3_step(statement) == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(statement, 0));
    } else {
      sqlite3_result_error(context, sqlite3_errmsg(db_), -1);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  }

 private:
  // Whether a width or precision, in the format or of an argument for a '*', is
  // beyond what a text may hold: it would be counted out.
  static bool AsksForMore(int count, sqlite3_value** values, size_t longest) {
    const std::string_view format = TextOf(values[0]);
    int argument = 1;
    size_t i = 0;
    const auto at = [&] { return i < format.size() ? format[i] : '\0'; };
    const auto is_more = [&] {
      if (at() == '*') {
        ++i;
        if (argument >= count) return false;
        const auto number = sqlite3_value_int64(values[argument++]);
        const auto most = static_cast<int64_t>(longest);
        return number > most || number < -most;
      }
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(
          format.data() + i, format.data() + format.size(), number);
      i = static_cast<size_t>(end - format.data());
      return error == std::errc::result_out_of_range || number > longest;
    };
    while ((i = format.find('%', i)) != std::string_view::npos) {
      ++i;
      while (i < format.size() && std::string_view("-+ #0!,").find(format[i]) !=
                                      std::string_view::npos)
        ++i;
      if (is_more()) return true;
      if (at() == '.') {
        ++i;
        if (is_more()) return true;
      }
      while (at() == 'l') ++i;
      if (at() != '%') ++argument;
      if (i < format.size()) ++i;
    }
    return false;
  }

  sqlite3_stmt* StatementOf(int count) {
    if (db_ == nullptr && sqlite3_open(":memory:", &db_) != SQLITE_OK)
      return nullptr;
    sqlite3_stmt*& statement = statements_[count];
    if (statement == nullptr) {
      std::string sql = "SELECT printf(";
      for (int i = 0; i < count; ++i) sql += i == 0 ? "?" : ",?";
      sqlite3_prepare_v2(db_, (sql + ")").c_str(), -1, &statement, nullptr);
    }
    return statement;
  }

  sqlite3* db_ = nullptr;
  std::map<int, sqlite3_stmt*> statements_;  // by count of arguments
};

void Print(sqlite3_context* context, int count, sqlite3_value** values) {
  static_cast<Printer*>(sqlite3_user_data(context))
      ->Print(context, count, values);
}

}  // namespace

void RegisterBounded(Database::Impl& impl) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC;
  const auto add = [&](const char* name, int count, auto* call) {
    sqlite3_create_function_v2(impl.db, name, count, kFlags, nullptr, call,
                               nullptr, nullptr, nullptr);
  };
  add("instr", 2, &Instr);
  add("replace", 3, &Replace);
  for (const int count : {1, 2}) {
    add("trim", count, &Trim<kLeft | kRight>);
    add("ltrim", count, &Trim<kLeft>);
    add("rtrim", count, &Trim<kRight>);
  }
  add("like", 2, &Match<false>);
  add("like", 3, &Match<false>);
  add("glob", 2, &Match<true>);
  for (const char* name : {"printf", "format"}) {
    sqlite3_create_function_v2(
        impl.db, name, -1, kFlags, new Printer, &Print, nullptr, nullptr,
        [](void* printer) { delete static_cast<Printer*>(printer); });
  }
}

}  // namespace lamina::sql
