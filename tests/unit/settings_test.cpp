// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mobius::base {
namespace {

mob_status_t load(Settings& settings, std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return settings.load(environment.data());
}

TEST(Settings, DefaultsWithoutEnvironment) {
  Settings settings;
  ASSERT_EQ(load(settings, {"PATH=/bin"}), MOB_OK);
  EXPECT_EQ(settings.address_mode(), AddressMode::kAuto);
  EXPECT_EQ(settings.number(SettingId::kSpin), kAutomatic);
  EXPECT_EQ(settings.number(SettingId::kWindowBytes), uint64_t{8} << 40);
  EXPECT_FALSE(settings.is_set(SettingId::kSpin));
  EXPECT_EQ(settings.text(SettingId::kProvider), "");
  EXPECT_EQ(settings.text(SettingId::kInterface), "");
  EXPECT_TRUE(settings.unknown().empty());
}

TEST(Settings, ValuesOfEveryType) {
  Settings settings;
  ASSERT_EQ(load(settings, {"MOBIUS_ADDRESS_MODE=table", "MOBIUS_SPIN_NS=0", "MOBIUS_YIELDS=3",
                            "MOBIUS_WINDOW_BYTES=64m", "MOBIUS_RANK=5",
                            "MOBIUS_PROVIDER=tcp;ofi_rxm", "MOBIUS_INTERFACE=10.0.0.0/24"}),
            MOB_OK);
  EXPECT_EQ(settings.address_mode(), AddressMode::kTable);
  EXPECT_EQ(settings.number(SettingId::kSpin), 0u);
  EXPECT_EQ(settings.number(SettingId::kYields), 3u);
  EXPECT_EQ(settings.number(SettingId::kWindowBytes), uint64_t{64} << 20);
  EXPECT_EQ(settings.text(SettingId::kRank), "5");
  EXPECT_TRUE(settings.is_set(SettingId::kRank));
  EXPECT_EQ(settings.text(SettingId::kProvider), "tcp;ofi_rxm");
  EXPECT_EQ(settings.text(SettingId::kInterface), "10.0.0.0/24");
}

TEST(Settings, MalformedValuesFailAndNameTheSettingTheValueAndWhatIsAllowed) {
  for (const char* entry :
       {"MOBIUS_ADDRESS_MODE=", "MOBIUS_ADDRESS_MODE=Same", "MOBIUS_SPIN_NS=-1",
        "MOBIUS_SPIN_NS=1us", "MOBIUS_SPIN_NS=1000000001", "MOBIUS_SPIN_NS=", "MOBIUS_YIELDS=1.5",
        "MOBIUS_YIELDS=0x10", "MOBIUS_WINDOW_BYTES=1K", "MOBIUS_WINDOW_BYTES=65T",
        "MOBIUS_WINDOW_BYTES=T", "MOBIUS_WINDOW_BYTES=18446744073709551616",
        "MOBIUS_WINDOW_BYTES=18446744073709551615T", "MOBIUS_LOG=loud"}) {
    Settings settings;
    EXPECT_EQ(load(settings, {entry}), MOB_ERR_SETTING) << entry;
    const std::string text = mob_last_error();
    const std::string name = std::string(entry).substr(0, std::string(entry).find('='));
    EXPECT_NE(text.find(name + "='"), std::string::npos) << text;
    EXPECT_NE(text.find("it takes"), std::string::npos) << text;
    EXPECT_NE(text.find("default"), std::string::npos) << text;
  }
}

TEST(Settings, UnknownNamesWarnAndSuggestTheNearest) {
  Settings settings;
  ASSERT_EQ(load(settings, {"MOBIUS_SPINNS=1", "MOBIUS_COMPLETELY_DIFFERENT=1", "MOBIUSX=1"}),
            MOB_OK);
  ASSERT_EQ(settings.unknown().size(), 2u);
  EXPECT_NE(settings.unknown()[0].find("did you mean MOBIUS_SPIN_NS?"), std::string::npos);
  EXPECT_NE(settings.unknown()[1].find("`mobius info`"), std::string::npos);
}

TEST(Settings, TableIsCompleteAndItsDefaultsParse) {
  for (const SettingInfo& info : setting_table()) {
    uint64_t number = 0;
    EXPECT_EQ(parse_setting(info, info.default_text, &number), MOB_OK) << info.name;
    EXPECT_GT(std::string(info.help).size(), 10u) << info.name;
    EXPECT_EQ(std::string(info.name).rfind("MOBIUS_", 0), 0u) << info.name;
  }
}

}  // namespace
}  // namespace mobius::base
