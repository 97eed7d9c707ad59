// SPDX-License-Identifier: Apache-2.0

#include <bit>
#include <charconv>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "base/counted.h"
#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/names_in_text.h"

namespace lamina {

namespace {

TEST(ShortCppName, DropsNamespacesParametersAndReturnType) {
  EXPECT_EQ(ShortCppName("void at::native::(anonymous namespace)::cunn_SoftMax"
                         "Forward<8, c10::BFloat16, float>(c10::BFloat16*, "
                         "c10::BFloat16 const*, int)"),
            "cunn_SoftMaxForward<8, BFloat16, float>");
  EXPECT_EQ(ShortCppName("void cutlass::Kernel2<cutlass_80_tensorop>("
                         "cutlass_80_tensorop::Params)"),
            "Kernel2<cutlass_80_tensorop>");
  EXPECT_EQ(
      ShortCppName("void at::native::vectorized_elementwise_kernel<4, "
                   "at::native::CUDAFunctor_add<c10::BFloat16>, "
                   "std::array<char*, 3ul> >(int, std::array<char*, 3ul>)"),
      "vectorized_elementwise_kernel<4, CUDAFunctor_add<BFloat16>, "
      "array<char*, 3ul>>");
  EXPECT_EQ(ShortCppName("void (anonymous namespace)::store_kvcache<2048l, "
                         "false>((anonymous namespace)::StoreKVCacheParams)"),
            "store_kvcache<2048l, false>");
}

TEST(ShortCppName, NamesTheFunctionAroundALambda) {
  EXPECT_EQ(
      ShortCppName(
          "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_"
          "impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIterator"
          "Base&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()"
          "() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)::"
          "{lambda(int)#1}>(int, at::native::x)"),
      "elementwise_kernel<128, 4, gpu_kernel_impl_nocast<direct_copy_kernel_"
      "cuda>>");
  EXPECT_EQ(ShortCppName("void a::sum_functor<c10::BFloat16>::operator()(at::"
                         "TensorIterator&)::{lambda(float, float)#1}(int)"),
            "sum_functor<BFloat16>");
}

TEST(ShortCppName, DemanglesFirst) {
  EXPECT_EQ(
      ShortCppName("_ZN5aiter24add_rmsnorm_quant_kernelIfLi64ELb1EEEvPT_"),
      "add_rmsnorm_quant_kernel<float, 64, true>");
}

// What is no C++ name, or is broken, keeps all that it says.
TEST(ShortCppName, LeavesOtherText) {
  for (const char* text :
       {"", "Memcpy DtoH (Device -> Pageable)", "attn_fwd",
        "torch/nn/modules/module.py(1501): _call_impl", "_ZN", "_ZN9x",
        "_ZN99999999999999999999999999x", "nn.Module: Linear_0", "a < b",
        "aten::mul", "autograd::engine::evaluate_function: MmBackward0",
        "x::y"}) {
    EXPECT_EQ(ShortCppName(text), text);
  }
  EXPECT_EQ(ShortCppName("a::b<c::d"), "b<d");
  EXPECT_EQ(ShortCppName("a::f(((("), "f");
  EXPECT_EQ(ShortCppName("x::operator<"), "x");
  EXPECT_EQ(ShortCppName("a::b(int)::{lambda()#1}"), "b");
}

TEST(ShortCppName, EndsOnDeepNesting) {
  std::string deep = "a::";
  for (int i = 0; i < 100'000; ++i) deep += "b<";
  EXPECT_FALSE(ShortCppName(deep).empty());
}

TEST(QualifiedCppName, EndsInFrontOfArguments) {
  EXPECT_EQ(QualifiedCppName("void at::native::elementwise_kernel<128>(int)"),
            "at::native::elementwise_kernel");
  EXPECT_EQ(QualifiedCppName("void x::(anonymous namespace)::f<(int)1>(int)"),
            "x::(anonymous namespace)::f");
  EXPECT_EQ(QualifiedCppName("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f");
  EXPECT_EQ(QualifiedCppName("Cijk_Ailk_Bljk"), "Cijk_Ailk_Bljk");
  EXPECT_EQ(QualifiedCppName("<unknown>"), "<unknown>");
  EXPECT_EQ(QualifiedCppName(""), "");
}

}  // namespace

namespace {

TEST(Demangle, ReadsSymbolsAndLeavesOtherText) {
  EXPECT_EQ(Demangle("_ZN2at6native3addIfEEvPT_"),
            "void at::native::add<float>(float*)");
  EXPECT_EQ(Demangle("_ZN2at6native3addIfEEvPT_.kd"),
            "void at::native::add<float>(float*)");
  for (const char* text : {"", "_Z", "_ZN", "add", "Memcpy DtoH", "_ZN99x"})
    EXPECT_EQ(Demangle(text), text);
}

// f(P<A, A>, P<1, 1>, P<2, 2>, ...): every argument is twice as long as the
// one before it.
std::string Doubling(int arguments) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1PI1AS0_E";
  for (int i = 0; i < arguments; ++i) {
    std::string number;
    for (int rest = i + 1; rest > 0; rest /= 36)
      number.insert(number.begin(), kDigits[rest % 36]);
    const std::string last = "S" + number + "_";
    name += "S_I" + last + last + "E";
  }
  return name;
}

TEST(Demangle, StopsWhereTheTextExplodes) {
  EXPECT_TRUE(Demangle(Doubling(4)).starts_with("f(P<A, A>, P<P<A, A>, "));
  const std::string hostile = Doubling(200);
  EXPECT_EQ(Demangle(hostile), hostile);
}

}  // namespace

namespace {

TEST(Escape, TerminalHidesControlAndDirectionCharacters) {
  EXPECT_EQ(EscapeTerminal("plain <text> 42"), "plain <text> 42");
  EXPECT_EQ(EscapeTerminal("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(EscapeTerminal("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(EscapeTerminal("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  // U+202E reverses the text behind it.
  EXPECT_EQ(EscapeTerminal("a\xE2\x80\xAE"
                           "b"),
            "a\\u202eb");
  // C1 controls and broken UTF-8.
  EXPECT_EQ(EscapeTerminal("\xC2\x9B"), "\\x9b");
  EXPECT_EQ(EscapeTerminal("\xFF\xC3"), "\\xff\\xc3");
}

TEST(Escape, JsonIsAlwaysValid) {
  EXPECT_EQ(JsonQuote("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
  EXPECT_EQ(JsonQuote("\xFFx"), "\"\xEF\xBF\xBDx\"");
  EXPECT_EQ(JsonQuote("\xE2\x82\xAC"), "\"\xE2\x82\xAC\"");
}

TEST(Escape, CsvQuotesOnlyWhereNeeded) {
  std::string out;
  AppendCsvField(out, "plain");
  out += '|';
  AppendCsvField(out, "a,b\"c");
  EXPECT_EQ(out, "plain|\"a,b\"\"c\"");
}

TEST(Escape, SafeCsvStopsFormulas) {
  const auto safe = [](std::string_view text) {
    std::string out;
    AppendSafeCsvField(out, text);
    return out;
  };
  EXPECT_EQ(safe("=1+1"), "'=1+1");
  EXPECT_EQ(safe("-1+cmd"), "'-1+cmd");
  EXPECT_EQ(safe("@x"), "'@x");
  EXPECT_EQ(safe("-12.5"), "-12.5");
  EXPECT_EQ(safe("-"), "-");
  EXPECT_EQ(safe("plain"), "plain");
}

TEST(Escape, MarkdownLeavesNoMarkup) {
  EXPECT_EQ(EscapeMarkdown("a_b <c> [d](e) `f` #1\n|"),
            "a\\_b \\<c\\> \\[d\\](e) \\`f\\` \\#1\\\\n\\|");
  EXPECT_EQ(MarkdownCode(""), "");
  EXPECT_EQ(MarkdownCode("a|b<c>"), "`a\\|b<c>`");
  EXPECT_EQ(MarkdownCode("`x`` y"), "``` `x`` y ```");
}

TEST(Escape, XmlLeavesNoMarkup) {
  EXPECT_EQ(EscapeXml("<a b='\"&\">\x01"),
            "&lt;a b=&#39;&quot;&amp;&quot;&gt;\xEF\xBF\xBD");
}

TEST(Escape, PythonLikeRepr) {
  const auto repr = [](std::string_view text) {
    std::string out;
    AppendPythonQuoted(out, text);
    return out;
  };
  EXPECT_EQ(repr("a'b"), "\"a'b\"");
  EXPECT_EQ(repr("a'b\"c"), "'a\\'b\"c'");
  EXPECT_EQ(repr("x\n\\"), "'x\\n\\\\'");
}

TEST(Escape, ShortenKeepsCharactersWhole) {
  EXPECT_EQ(Shorten("abcdef", 10), "abcdef");
  EXPECT_EQ(Shorten("abcdef", 3), "abc...");
  EXPECT_EQ(Shorten("a\xC3\xBC"
                    "b",
                    2),
            "a...");
}

TEST(Escape, DisplayWidthCountsCells) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("\xE6\xBC\xA2"), 2u);  // a wide character
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);     // with a combining mark
  EXPECT_EQ(DisplayPrefix("ab\xE6\xBC\xA2", 3), "ab");
}

// All code points survive a round trip, all others are refused.
TEST(Escape, Utf8RoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(text, c);
    size_t pos = 0;
    ASSERT_EQ(DecodeUtf8(text, pos), c);
    ASSERT_EQ(pos, text.size());
  }
  for (const std::string_view bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                     "\xF4\x90\x80\x80", "\x80", "\xE2\x82"}) {
    size_t pos = 0;
    EXPECT_EQ(DecodeUtf8(bad, pos), 0xFFFFFFFF);
    EXPECT_EQ(pos, 1u);
  }
}

TEST(Names, AreAlikeWithoutTheirNumbers) {
  EXPECT_EQ(WithoutNumbers("iteration 3"), WithoutNumbers("iteration 17"));
  EXPECT_EQ(WithoutNumbers("layers.12.w1"), "layers.#.w#");
  EXPECT_EQ(WithoutNumbers("ProfilerStep#3"), "ProfilerStep#");
  EXPECT_EQ(WithoutNumbers(""), "");
}

}  // namespace

namespace {

// Knows `layer` and the question `report`.
std::optional<std::string> Few(std::string_view name) {
  if (name == "layer") return "layer";
  if (name == "report()") return "report";
  return std::nullopt;
}

TEST(NamesInText, AreThoseOfWhoAsks) {
  const std::string text = "⟨layer⟩: expected numbers; see ⟨report()⟩";
  EXPECT_EQ(WithNames(text, OptionNames),
            "--layer: expected numbers; see lamina report");
  EXPECT_EQ(WithNames(text, Few), "layer: expected numbers; see report");
  EXPECT_EQ(WithNames("⟨min_share⟩ of ⟨tree()⟩; ⟨lamina⟩ tree T", PlainNames),
            "min_share of tree");
  EXPECT_EQ(WithNames("⟨min_share⟩ of ⟨graph_log_diff()⟩", OptionNames),
            "--min-share of lamina graph log-diff");
  EXPECT_EQ(WithNames("a <b> \"c\" (d); e", Few), "a <b> \"c\" (d); e");
}

TEST(NamesInText, ClausesOfWhatIsMissingAreLeftOut) {
  EXPECT_EQ(WithNames("another dump? ⟨force⟩ goes on", Few), "another dump?");
  EXPECT_EQ(WithNames("fits badly (⟨force⟩ says them all; ⟨layer⟩).", Few),
            "fits badly.");
  EXPECT_EQ(WithNames("one (⟨report()⟩ says it) of ⟨layer⟩", Few),
            "one (report says it) of layer");
  EXPECT_EQ(WithNames("leave it out; ⟨lamina⟩ diff A B ⟨layer⟩", Few),
            "leave it out");
  EXPECT_EQ(WithNames("⟨lamina⟩ list devices; or a file", Few), "or a file");
  EXPECT_EQ(WithNames("One thing. ⟨all⟩ lists them; and more.", Few),
            "One thing. and more.");
  EXPECT_EQ(WithNames("Ends with it; ⟨all⟩ lists them.", Few), "Ends with it.");
  // Something is said in any case.
  EXPECT_EQ(WithNames("⟨all⟩ lists them.", Few), "all lists them.");
}

TEST(NamesInText, ErrorsSayWhatIsWrong) {
  const Error error =
      WithNames(UsageError("⟨force⟩ needs ⟨layer⟩", "leave out ⟨force⟩"), Few);
  EXPECT_EQ(error.what, "force needs layer");
  EXPECT_EQ(error.hint, "");
}

TEST(NamesInText, HalfANameIsText) {
  for (const char* text : {"⟨layer", "layer⟩ and ⟨", "⟩⟨", "⟨"})
    EXPECT_EQ(WithNames(text, Few), text);
}

}  // namespace

namespace {

int64_t Ns(std::string_view text) {
  const auto time = ParseMicroseconds(text);
  EXPECT_TRUE(time.has_value()) << text;
  return time ? time->ns : -1;
}

TEST(Decimal, MicrosecondsAreExact) {
  EXPECT_EQ(Ns("0"), 0);
  EXPECT_EQ(Ns("1"), 1000);
  EXPECT_EQ(Ns("1.5"), 1500);
  EXPECT_EQ(Ns("4458676524648.797"), 4458676524648797);
  // A double would be off by 43 ns here.
  EXPECT_EQ(Ns("1712106710123456.789"), 1712106710123456789);
  EXPECT_EQ(Ns("-0.005"), -5);
  EXPECT_EQ(Ns("1e3"), 1000000);
  EXPECT_EQ(Ns("12.5E-1"), 1250);
  EXPECT_EQ(Ns("9223372036854775.807"), INT64_MAX);
}

TEST(Decimal, RoundsHalfToEvenAndSaysSo) {
  const auto check = [](std::string_view text, int64_t ns) {
    const auto time = ParseMicroseconds(text);
    ASSERT_TRUE(time.has_value());
    EXPECT_EQ(time->ns, ns) << text;
    EXPECT_FALSE(time->exact) << text;
  };
  check("0.0005", 0);
  check("0.0015", 2);
  check("0.0025", 2);
  check("0.00250000000000000000000000000000001", 3);
  check("1.9999", 2000);
  EXPECT_TRUE(ParseMicroseconds("0.0010")->exact);
}

TEST(Decimal, RefusesWhatIsNoTime) {
  for (const std::string_view bad :
       {"", "-", ".", "1.2.3", "abc", "1e", "0x10", "1e300", "nan",
        "9223372036854775.808", "1 "}) {
    EXPECT_FALSE(ParseMicroseconds(bad).has_value()) << bad;
  }
  // Tiny and huge exponents end quickly.
  EXPECT_EQ(Ns("1e-999999999"), 0);
  EXPECT_FALSE(ParseMicroseconds("1e999999999").has_value());
}

// Against 128-bit arithmetic on random digits.
TEST(Decimal, MatchesSlowTwin) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto whole = static_cast<int64_t>(random() % 9000000000000000);
    const int digits = static_cast<int>(random() % 7);
    std::string text = std::to_string(whole);
    int64_t scaled = whole * 1000;
    if (digits > 0) {
      uint64_t fraction = 0;
      text += '.';
      uint64_t scale = 1;
      for (int d = 0; d < digits; ++d) {
        const unsigned digit = static_cast<unsigned>(random() % 10);
        text += static_cast<char>('0' + digit);
        fraction = fraction * 10 + digit;
        scale *= 10;
      }
      // fraction / scale microseconds = fraction * 1000 / scale ns.
      const uint64_t ns = fraction * 1000 / scale;
      const uint64_t rest = fraction * 1000 % scale;
      const bool up =
          rest * 2 > scale ||
          (rest * 2 == scale && (static_cast<uint64_t>(scaled) + ns) % 2 == 1);
      scaled += static_cast<int64_t>(ns + (up ? 1 : 0));
    }
    ASSERT_EQ(Ns(text), scaled) << text;
  }
}

TEST(Decimal, FormatIsTheInverse) {
  EXPECT_EQ(FormatMicroseconds(1234567), "1234.567");
  EXPECT_EQ(FormatMicroseconds(-5), "-0.005");
  EXPECT_EQ(FormatMicroseconds(0), "0.000");
  EXPECT_EQ(FormatMicroseconds(INT64_MIN), "-9223372036854775.808");
  for (const int64_t ns :
       {int64_t{1}, int64_t{999}, int64_t{1000}, int64_t{1712106710123456789}})
    EXPECT_EQ(Ns(FormatMicroseconds(ns)), ns);
}

TEST(Decimal, Integers) {
  EXPECT_EQ(ParseInt("42"), 42);
  EXPECT_EQ(ParseInt("-7"), -7);
  EXPECT_EQ(ParseInt("3.0"), 3);
  EXPECT_EQ(ParseInt("1e3"), 1000);
  EXPECT_FALSE(ParseInt("3.5").has_value());
  EXPECT_FALSE(ParseInt("").has_value());
  EXPECT_FALSE(ParseInt("99999999999999999999").has_value());
}

TEST(Decimal, DoublesPrintAsInPython) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(16), "16.0");
  EXPECT_EQ(FormatDouble(1e-7), "1e-07");
  EXPECT_EQ(FormatDouble(1e16), "1e+16");
  EXPECT_EQ(FormatDouble(1.6752), "1.6752");
  EXPECT_EQ(FormatDouble(-0.0), "-0.0");
  EXPECT_EQ(FormatDouble(9999999999999998), "9999999999999998.0");
}

// The standard library has the same shortest digits in either form.
std::string ByStandard(double value) {
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  char text[40];
  const auto [end, code] = std::to_chars(
      text, text + sizeof(text), value,
      fixed ? std::chars_format::fixed : std::chars_format::scientific);
  EXPECT_EQ(code, std::errc());
  std::string out(text, end);
  return fixed && out.find('.') == std::string::npos ? out + ".0" : out;
}

TEST(Decimal, DoublesPrintAsByTheStandardLibrary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    const double any = std::bit_cast<double>(bits);
    for (const double value : {any, static_cast<double>(bits >> bits % 64),
                               static_cast<double>(bits % 1000000) / 1000,
                               1e16 + static_cast<double>(bits % 100) - 50}) {
      if (std::isfinite(value)) {
        ASSERT_EQ(FormatDouble(value), ByStandard(value));
      }
    }
  }
}

TEST(Decimal, HumanForms) {
  EXPECT_EQ(HumanTime(999), "999 ns");
  EXPECT_EQ(HumanTime(1234567), "1.23 ms");
  EXPECT_EQ(HumanTime(123456789012), "123 s");
  EXPECT_EQ(HumanBytes(2048), "2.00 KiB");
  EXPECT_EQ(HumanCount(12345), "12.3 k");
  EXPECT_EQ(GroupDigits(-1234567), "-1,234,567");
}

}  // namespace

namespace {

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(Counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(Counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(Counted(1234567, "kernel"), "1,234,567 kernels");
  EXPECT_EQ(Counted(1, "pass", "passes"), "1 pass");
  EXPECT_EQ(Counted(2, "pass", "passes"), "2 passes");
}

}  // namespace

}  // namespace lamina
