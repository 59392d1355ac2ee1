// SPDX-License-Identifier: BSD-3-Clause
#include "base/hook_list.h"

#include <mobius/status.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/settings.h"

namespace mobius::base {
namespace {

TEST(HookList, ParsesNamesAndParametersInOrder) {
  std::vector<HookSpec> hooks;
  std::string problem;
  ASSERT_TRUE(
      parse_hooks("trace,delay:max_us=7:seed=3,fault:every=2,reorder,stats", &hooks, &problem))
      << problem;
  const std::vector<HookSpec> expected = {{.kind = HookKind::kTrace},
                                          {.kind = HookKind::kDelay, .seed = 3, .max_us = 7},
                                          {.kind = HookKind::kFault, .every = 2},
                                          {.kind = HookKind::kReorder},
                                          {.kind = HookKind::kStats}};
  EXPECT_EQ(hooks, expected);
}

TEST(HookList, EmptyTextIsNoHook) {
  std::vector<HookSpec> hooks = {{.kind = HookKind::kStats}};
  std::string problem;
  EXPECT_TRUE(parse_hooks("", &hooks, &problem));
  EXPECT_TRUE(hooks.empty());
}

TEST(HookList, MalformedListsAreRefusedAndExplained) {
  const struct {
    const char* text;
    const char* explanation;
  } cases[] = {{"slow", "'slow' is not a hook"},
               {"delay,", "missing after the last comma"},
               {",delay", "'' is not a hook"},
               {"delay:", "ends before its parameter"},
               {"delay:max_us", "needs a whole number"},
               {"delay:max_us=", "needs a whole number"},
               {"delay:max_us=1x", "needs a whole number"},
               {"delay:max_us=-1", "needs a whole number"},
               {"delay:max_us=1000001", "from 0 to 1000000"},
               {"reorder:max_us=1", "reorder has no parameter 'max_us'"},
               {"fault:every=0", "from 1 to"},
               {"fault:every=18446744073709551616", "needs a whole number"},
               {"trace:seed=1", "trace has no parameter 'seed'"},
               {"stats,stats", "named twice"}};
  for (const auto& each : cases) {
    std::vector<HookSpec> hooks;
    std::string problem;
    EXPECT_FALSE(parse_hooks(each.text, &hooks, &problem)) << each.text;
    EXPECT_NE(problem.find(each.explanation), std::string::npos) << each.text << ": " << problem;
  }
}

TEST(HookList, TheSettingIsCheckedWhenItIsLoaded) {
  const char* environment[] = {"MOBIUS_HOOKS=delay:max_us=soon", nullptr};
  Settings settings;
  EXPECT_EQ(settings.load(environment), MOB_ERR_SETTING);
  const std::string text = mob_last_error();
  EXPECT_NE(text.find("MOBIUS_HOOKS='delay:max_us=soon'"), std::string::npos) << text;
  EXPECT_NE(text.find("it takes"), std::string::npos) << text;
}

TEST(Settings, SizesMayBeAutomaticWhereThatIsTheDefault) {
  const char* automatic[] = {"MOBIUS_COPY_STREAM_BYTES=auto", nullptr};
  Settings settings;
  ASSERT_EQ(settings.load(automatic), MOB_OK) << mob_last_error();
  EXPECT_EQ(settings.number(SettingId::kCopyStreamBytes), kAutomatic);
  const char* refused[] = {"MOBIUS_WINDOW_BYTES=auto", nullptr};
  EXPECT_EQ(settings.load(refused), MOB_ERR_SETTING);
}

}  // namespace
}  // namespace mobius::base
