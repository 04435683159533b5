#include "peal/base/config.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {
namespace {

Error wrong_value() { return Error(ErrorKind::kUsage, "wrong value"); }

double parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // "inf" and "nan" are numbers to from_chars.
  const bool is_sensible = number > 0 && number < 1e12;
  if (error != std::errc() || end != text.data() + text.size() || !is_sensible) {
    throw wrong_value();
  }
  return number;
}

/// "4M", "512K", "65536"
Bytes parse_bytes(std::string_view text) {
  std::int64_t unit = 1;
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  const double number = parse_number(text) * static_cast<double>(unit);
  if (number < 4096 || number > 32 << 20) throw wrong_value();
  return Bytes(static_cast<std::int64_t>(number));
}

constexpr std::array<std::string_view, 3> kTransportNames = {"auto", "shm", "tcp"};

TransportChoice parse_transport(std::string_view text) {
  for (std::size_t i = 0; i < kTransportNames.size(); ++i) {
    if (text == kTransportNames[i]) return static_cast<TransportChoice>(i);
  }
  throw wrong_value();
}

const std::array kVariables = {
    Variable{"PEAL_SECRET",
             "any text",
             "The job's secret; every connection is proved with it. PEAL_SECRET_FILE names a file "
             "instead.",
             [](std::string_view text, Config& c) { c.secret = text; },
             [](const Config& c) -> std::string { return c.secret.empty() ? "" : "(set)"; }},
    Variable{"PEAL_INTERFACE",
             "names, ^names and CIDR, separated by commas, as in eth0,10.0.0.0/8 or ^docker0",
             "The network interfaces to use.",
             [](std::string_view text, Config& c) { c.interfaces = text; },
             [](const Config& c) { return c.interfaces; }},
    Variable{
        "PEAL_TRANSPORT",
        "auto, shm or tcp",
        "How ranks reach each other; auto is shared memory inside a host and TCP between hosts.",
        [](std::string_view text, Config& c) { c.transport = parse_transport(text); },
        [](const Config& c) {
          return std::string(kTransportNames[static_cast<std::size_t>(c.transport)]);
        }},
    Variable{"PEAL_TIMEOUT",
             "seconds, as in 300 or 0.5",
             "How long rendezvous, connection and each operation may take.",
             [](std::string_view text, Config& c) {
               c.timeout = Timeout(static_cast<std::int64_t>(std::ceil(parse_number(text) * 1000)));
             },
             [](const Config& c) {
               return fmt::format("{}", static_cast<double>(c.timeout.count()) / 1000.0);
             }},
    Variable{"PEAL_ALGORITHM",
             "direct, ring, recursive_doubling, halving_doubling, binomial_tree or pairwise",
             "The algorithm for every operation that it can do, in place of the built-in choice.",
             [](std::string_view text, Config& c) { c.algorithm = text; },
             [](const Config& c) { return c.algorithm; }},
    Variable{"PEAL_STAGE",
             "bytes from 4096 to 32M, as in 65536, 512K or 4M",
             "Shared memory that a rank stages foreign buffers in, for each group.",
             [](std::string_view text, Config& c) { c.stage = parse_bytes(text); },
             [](const Config& c) { return fmt::format("{}", c.stage.value); }},
};

std::string read_secret(const std::string& path) {
  std::ifstream file(path);
  std::string secret;
  if (!std::getline(file, secret) || secret.empty()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("PEAL_SECRET_FILE: cannot read a secret from the first line of \"{}\"", path));
  }
  return secret;
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

Config config_from(const Environment& environment) {
  Config config;
  for (const Variable& variable : kVariables) {
    const auto text = environment(std::string(variable.name));
    if (!text) continue;
    try {
      variable.parse(*text, config);
    } catch (const Error&) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}=\"{}\": it takes {}", variable.name, *text, variable.value));
    }
  }
  if (const auto path = environment("PEAL_SECRET_FILE"); path && config.secret.empty()) {
    config.secret = read_secret(*path);
  }
  return config;
}

}  // namespace peal
