#include "peal/launch/guard_messages.h"

#include "peal/base/serialize.h"

namespace peal::launch {
namespace {

constexpr Bytes kMaxText = 16_MiB;

std::string get_text(ByteReader& reader) { return std::string(reader.get_text(kMaxText)); }

}  // namespace

std::string encode(const RankCommand& command) {
  ByteWriter writer;
  writer.put_i32(command.rank).put_text(command.program);
  writer.put_u32(static_cast<std::uint32_t>(command.arguments.size()));
  for (const std::string& argument : command.arguments) writer.put_text(argument);
  writer.put_u32(static_cast<std::uint32_t>(command.environment.size()));
  for (const auto& [name, value] : command.environment) writer.put_text(name).put_text(value);
  writer.put_u32(static_cast<std::uint32_t>(command.cpus.size()));
  for (const int cpu : command.cpus) writer.put_i32(cpu);
  writer.put_u32(static_cast<std::uint32_t>(command.after_end.size()));
  for (const std::string& word : command.after_end) writer.put_text(word);
  return std::move(writer).take();
}

RankCommand decode_command(std::string_view bytes) {
  ByteReader reader(bytes, "order to start a rank");
  RankCommand command;
  command.rank = reader.get_i32();
  command.program = get_text(reader);
  for (auto left = reader.get_u32(); left > 0; --left) {
    command.arguments.push_back(get_text(reader));
  }
  for (auto left = reader.get_u32(); left > 0; --left) {
    std::string name = get_text(reader);
    command.environment.emplace(std::move(name), get_text(reader));
  }
  for (auto left = reader.get_u32(); left > 0; --left) command.cpus.push_back(reader.get_i32());
  for (auto left = reader.get_u32(); left > 0; --left)
    command.after_end.push_back(get_text(reader));
  reader.finish();
  return command;
}

}  // namespace peal::launch
