// SPDX-License-Identifier: Apache-2.0
#include "base/names_in_text.h"

#include <gtest/gtest.h>

namespace lamina {
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
}  // namespace lamina
