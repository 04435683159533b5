#include "peal/config/config.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

namespace peal {
namespace {

TEST(ConfigTest, AnEmptyEnvironmentGivesTheDefaults) {
  EXPECT_EQ(config_from(fixed_environment({})), Config{});
}

TEST(ConfigTest, SecondsAreRoundedUpToMilliseconds) {
  const auto timeout = [](const char* seconds) {
    return config_from(fixed_environment({{"PEAL_TIMEOUT", seconds}})).timeout;
  };
  EXPECT_EQ(timeout("33338.334"), Timeout(33338334));  // the product with 1000 is above this
  EXPECT_EQ(timeout("33338.3333"), Timeout(33338334));
  EXPECT_EQ(timeout("0.0004"), Timeout(1));
  EXPECT_EQ(timeout("300"), Timeout(300000));
}

TEST(ConfigTest, AWrongValueNamesTheVariableAndTheAcceptedValues) {
  try {
    config_from(fixed_environment({{"PEAL_TIMEOUT", "soon"}}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("PEAL_TIMEOUT"), testing::HasSubstr("seconds")));
  }
}

TEST(ConfigTest, AllWrongValuesAreNamedAndTheOthersAreRead) {
  const Environment environment = fixed_environment(
      {{"PEAL_TIMEOUT", "soon"}, {"PEAL_TRANSPORT", "tcp"}, {"PEAL_STAGE", "little"}});
  const ConfigReading reading = read_config(environment);
  EXPECT_EQ(reading.config.transport, TransportChoice::kTcp);
  EXPECT_EQ(reading.config.timeout, Config{}.timeout);
  ASSERT_EQ(reading.wrong.size(), 2u);
  EXPECT_EQ(reading.wrong[0].name, "PEAL_TIMEOUT");
  EXPECT_EQ(reading.wrong[1].name, "PEAL_STAGE");
  try {
    config_from(environment);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("PEAL_TIMEOUT=\"soon\": it takes seconds"),
                               testing::HasSubstr("PEAL_STAGE=\"little\": it takes bytes")));
  }
}

TEST(ConfigTest, ValuesOutOfRangeAreRejected) {
  const auto refuses = [](const std::string& name, const std::string& value) {
    EXPECT_THROW(config_from(fixed_environment({{name, value}})), Error) << name << "=" << value;
  };
  for (const char* value : {"", "0", "-1", "5s", "inf", "nan", "1e300"}) {
    refuses("PEAL_TIMEOUT", value);
  }
  for (const char* value : {"", "M", "4095", "33M", "4G", "1e300"}) refuses("PEAL_STAGE", value);
  refuses("PEAL_TRANSPORT", "pigeon");
  for (const char* value : {"", "1", "ON", "yes"}) refuses("PEAL_TLS", value);
  for (const char* value : {"", "crc32", "tls", "off"}) refuses("PEAL_INTEGRITY", value);
  for (const char* value : {"", "two words", "a_name_too_long_for_it"}) {
    refuses("PEAL_CONGESTION", value);
  }
  refuses("PEAL_SECRET_FILE", "/no/such/file");
}

TEST(ConfigTest, ASizeMayHaveAUnitInUpperOrLowerCase) {
  for (const char* value : {"1048576", "1024K", "1M", "1m", "1mb", "1MiB"}) {
    EXPECT_EQ(config_from(fixed_environment({{"PEAL_STAGE", value}})).stage, 1_MiB) << value;
  }
}

TEST(ConfigTest, TlsIncludesTheCheck) {
  const auto protection = [](const char* tls, const char* integrity) {
    return link_protection_of(
        config_from(fixed_environment({{"PEAL_TLS", tls}, {"PEAL_INTEGRITY", integrity}})));
  };
  EXPECT_EQ(link_protection_of(Config{}), LinkProtection::kPlain);
  EXPECT_EQ(protection("off", "none"), LinkProtection::kPlain);
  EXPECT_EQ(protection("off", "crc"), LinkProtection::kChecked);
  EXPECT_EQ(protection("on", "none"), LinkProtection::kEncrypted);
  EXPECT_EQ(protection("on", "crc"), LinkProtection::kEncrypted);
}

TEST(ConfigTest, TheSecretCanComeFromAFile) {
  const PrivateFolder folder("peal-test.");
  const std::string path = folder.write("secret", "0123456789abcdef\nnot this line");
  const std::string own = "another of 16 or more";
  const Config config = config_from(fixed_environment({{"PEAL_SECRET_FILE", path}}));
  EXPECT_EQ(config.secret.text(), "0123456789abcdef");
  EXPECT_EQ(config.secret_file, path);
  EXPECT_EQ(
      config_from(fixed_environment({{"PEAL_SECRET_FILE", path}, {"PEAL_SECRET", own}})).secret,
      Secret(own));
}

TEST(ConfigTest, AShortSecretIsRejectedAndNotShown) {
  const PrivateFolder folder("peal-test.");
  const std::string weak = "swordfish";
  const std::string path = folder.write("short_secret", weak + "\n");
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"PEAL_SECRET", weak}, {"PEAL_SECRET_FILE", path}}) {
    const ConfigReading reading = read_config(fixed_environment({{name, value}}));
    EXPECT_TRUE(reading.config.secret.empty());
    ASSERT_EQ(reading.wrong.size(), 1U) << name;
    EXPECT_THAT(reading.wrong[0].problem,
                testing::AllOf(testing::StartsWith(name),
                               testing::HasSubstr("9 characters"),
                               testing::HasSubstr("openssl rand -hex 32"),
                               testing::Not(testing::HasSubstr(weak))));
  }
}

/// Otherwise a script whose variable is empty by mistake would run without a secret.
TEST(ConfigTest, AnEmptySecretIsAnError) {
  const ConfigReading reading = read_config(fixed_environment({{"PEAL_SECRET", ""}}));
  ASSERT_EQ(reading.wrong.size(), 1U);
  EXPECT_THAT(reading.wrong[0].problem, testing::HasSubstr("PEAL_SECRET"));
  EXPECT_THAT(reading.wrong[0].problem, testing::HasSubstr("0 characters"));
}

TEST(ConfigTest, ASecretFileThatCannotBeReadIsAnErrorWithAReason) {
  const PrivateFolder folder("peal-test.");
  const std::string empty = folder.write("empty", "\n");
  for (const auto& [path, reason] :
       {std::pair<std::string, std::string>{"/no/such", "No such file"},
        {empty, "its first line is empty"}}) {
    const ConfigReading reading = read_config(fixed_environment({{"PEAL_SECRET_FILE", path}}));
    ASSERT_EQ(reading.wrong.size(), 1u);
    EXPECT_NE(reading.wrong[0].problem.find(reason), std::string::npos) << reading.wrong[0].problem;
  }
}

TEST(ConfigTest, RowsOfAlgorithmsCanComeFromAFile) {
  const PrivateFolder folder("peal-test.");
  const std::string path =
      folder.write("tune", "all_reduce:0-4k:inline\nall_reduce:4k-inf:direct\n");
  const Config config = config_from(fixed_environment({{"PEAL_TUNE", "@" + path}}));
  EXPECT_EQ(config.tune, "all_reduce:0-4k:inline\nall_reduce:4k-inf:direct\n");
  Config again;
  for (const Variable& variable : variables()) {
    if (variable.name == "PEAL_TUNE") variable.parse(variable.print(config), again);
  }
  EXPECT_EQ(again, config);
  EXPECT_THROW(config_from(fixed_environment({{"PEAL_TUNE", "@/no/such/file"}})), Error);
}

TEST(ConfigTest, FaultsCanComeFromTheVariableOrFromAFile) {
  const FaultPlan plan = parse_faults("rank 1 kill at operation 10; link 0-1 delay 20 ms");
  const PrivateFolder folder("peal-test.");
  const std::string path =
      folder.write("faults", "rank 1 kill at operation 10\nlink 0-1 delay 20 ms\n");
  for (const std::string& value : {to_text(plan), "@" + path}) {
    const Config config = config_from(fixed_environment({{"PEAL_INJECT", value}}));
    EXPECT_EQ(config.faults, plan);
    const auto variable = std::ranges::find(variables(), "PEAL_INJECT", &Variable::name);
    EXPECT_EQ(variable->print(config), value);
  }
  const ConfigReading reading =
      read_config(fixed_environment({{"PEAL_INJECT", "rank 1 kill at noon"}}));
  ASSERT_EQ(reading.wrong.size(), 1u);
  EXPECT_THAT(reading.wrong[0].problem, testing::HasSubstr("found \"noon\", expected"));
}

TEST(ConfigTest, AnUnusableFileIsAWrongValueOfItsVariable) {
  const PrivateFolder folder("peal-test.");
  const std::string empty = folder.write("nothing", "");
  struct Wrong {
    std::string path;
    std::string tune;
    std::string secret;
  };
  for (const auto& [path, tune, secret] :
       {Wrong{"/var/tmp", "cannot be read: Is a directory", "cannot be read: Is a directory"},
        Wrong{"/dev/zero",
              "cannot be read: it holds more than 1048576 bytes",
              "cannot be read: it holds more than 1048576 bytes"},
        Wrong{empty, "the file is empty", "its first line is empty"}}) {
    const ConfigReading reading =
        read_config(fixed_environment({{"PEAL_TUNE", "@" + path}, {"PEAL_SECRET_FILE", path}}));
    ASSERT_EQ(reading.wrong.size(), 2U) << path;
    EXPECT_THAT(reading.wrong[0].problem,
                testing::HasSubstr("PEAL_SECRET_FILE=\"" + path + "\": " + secret));
    EXPECT_THAT(reading.wrong[1].problem,
                testing::AllOf(testing::HasSubstr("PEAL_TUNE=\"@" + path + "\": "),
                               testing::HasSubstr(tune)));
  }
}

TEST(ConfigTest, EachVariableReadsBackAsPrinted) {
  const Config config = config_from(fixed_environment({{"PEAL_INTERFACE", "^docker0"},
                                                       {"PEAL_TRANSPORT", "tcp"},
                                                       {"PEAL_TLS", "on"},
                                                       {"PEAL_INTEGRITY", "crc"},
                                                       {"PEAL_TIMEOUT", "2.5"},
                                                       {"PEAL_ALGORITHM", "ring"},
                                                       {"PEAL_TUNE", "barrier:0-inf:ring"},
                                                       {"PEAL_STAGE", "512K"},
                                                       {"PEAL_FLIGHT_DIR", "/tmp/flights"}}));
  Config again;
  for (const Variable& variable : variables()) {
    const std::string text = variable.print(config);
    if (!text.empty()) variable.parse(text, again);
  }
  EXPECT_EQ(again, config);
}

TEST(ConfigTest, ASecretIsNeverPrinted) {
  Config config;
  config.secret = Secret("hush");
  for (const Variable& variable : variables()) EXPECT_NE(variable.print(config), "hush");
}

}  // namespace
}  // namespace peal
