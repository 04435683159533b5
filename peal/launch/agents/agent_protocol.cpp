#include "peal/launch/agents/agent_protocol.h"

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/serialize.h"

namespace peal::launch::agents {
namespace {

constexpr std::string_view kBannerWord = "PEAL-AGENT ";
constexpr std::size_t kHeader = 5;

std::string text(ByteReader& reader) { return std::string(reader.get_text(kLongestFrame)); }

void put(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.put_u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& each : texts) writer.put_text(each);
}

std::vector<std::string> texts(ByteReader& reader) {
  std::vector<std::string> all;
  for (auto left = reader.get_u32(); left > 0; --left) all.push_back(text(reader));
  return all;
}

void put(ByteWriter& writer, const std::map<std::string, std::string>& variables) {
  writer.put_u32(static_cast<std::uint32_t>(variables.size()));
  for (const auto& [name, value] : variables) writer.put_text(name).put_text(value);
}

std::map<std::string, std::string> variables(ByteReader& reader) {
  std::map<std::string, std::string> all;
  for (auto left = reader.get_u32(); left > 0; --left) {
    std::string name = text(reader);
    all.insert_or_assign(std::move(name), text(reader));
  }
  return all;
}

void put(ByteWriter& writer, Timeout time) { writer.put_i64(time.count()); }
Timeout time(ByteReader& reader) { return Timeout(reader.get_i64()); }

}  // namespace

std::string encode(const Banner& banner) {
  return fmt::format("{}{} {}\n", kBannerWord, banner.protocol, banner.version);
}

std::optional<Banner> decode_banner(std::string_view line) {
  if (!line.starts_with(kBannerWord)) return std::nullopt;
  line.remove_prefix(kBannerWord.size());
  const auto space = line.find(' ');
  const auto protocol = try_parse_number<int>(line.substr(0, space));
  if (!protocol || space == std::string_view::npos) return std::nullopt;
  return Banner{*protocol, std::string(line.substr(space + 1))};
}

std::string encode(const Begin& begin) {
  ByteWriter writer;
  writer.put_text(begin.job);
  writer.put_u32(static_cast<std::uint32_t>(begin.commands.size()));
  for (const WantedCommand& command : begin.commands) {
    put(writer, command.words);
    writer.put_text(command.path);
  }
  put(writer, begin.environment);
  writer.put_text(begin.directory);
  writer.put_u8(begin.has_files ? 1 : 0);
  put(writer, begin.grace);
  put(writer, begin.silence);
  writer.put_u8(static_cast<std::uint8_t>(begin.addresses));
  put(writer, begin.images);
  writer.put_text(begin.container_engine);
  return std::move(writer).take();
}

Begin decode_begin(std::string_view bytes) {
  ByteReader reader(bytes, "first order to an agent");
  Begin begin;
  begin.job = text(reader);
  for (auto left = reader.get_u32(); left > 0; --left) {
    std::vector<std::string> words = texts(reader);
    begin.commands.push_back({std::move(words), text(reader)});
  }
  begin.environment = variables(reader);
  begin.directory = text(reader);
  begin.has_files = reader.get_u8() != 0;
  begin.grace = time(reader);
  begin.silence = time(reader);
  begin.addresses = static_cast<AddressSource>(reader.get_u8());
  begin.images = texts(reader);
  begin.container_engine = text(reader);
  reader.finish();
  return begin;
}

std::string encode(const Ready& ready) {
  ByteWriter writer;
  writer.put_i32(ready.exit_code).put_text(ready.problem);
  writer.put_u32(static_cast<std::uint32_t>(ready.commands.size()));
  for (const FoundCommand& found : ready.commands) {
    writer.put_text(found.program);
    put(writer, found.command);
  }
  put(writer, ready.own);
  writer.put_u32(static_cast<std::uint32_t>(ready.cores.size()));
  for (const Core& core : ready.cores) {
    writer.put_u32(static_cast<std::uint32_t>(core.cpus.size()));
    for (const int cpu : core.cpus) writer.put_i32(cpu);
  }
  writer.put_text(ready.quota ? fmt::format("{}", *ready.quota) : "");
  writer.put_u16(ready.port).put_text(ready.address).put_text(ready.launcher_address);
  writer.put_text(ready.records).put_text(ready.container_engine).put_text(ready.notice);
  return std::move(writer).take();
}

Ready decode_ready(std::string_view bytes) {
  ByteReader reader(bytes, "answer of an agent");
  Ready ready;
  ready.exit_code = reader.get_i32();
  ready.problem = text(reader);
  for (auto left = reader.get_u32(); left > 0; --left) {
    std::string program = text(reader);
    ready.commands.push_back({std::move(program), texts(reader)});
  }
  ready.own = variables(reader);
  for (auto cores = reader.get_u32(); cores > 0; --cores) {
    Core core;
    for (auto left = reader.get_u32(); left > 0; --left) core.cpus.push_back(reader.get_i32());
    ready.cores.push_back(std::move(core));
  }
  ready.quota = try_parse_number<double>(reader.get_text(64_B));
  ready.port = reader.get_u16();
  ready.address = text(reader);
  ready.launcher_address = text(reader);
  ready.records = text(reader);
  ready.container_engine = text(reader);
  ready.notice = text(reader);
  reader.finish();
  return ready;
}

std::string encode(const FilePart& part) {
  ByteWriter writer;
  writer.put_text(part.path);
  writer.put_u8(part.is_first ? 1 : 0).put_u8(part.is_last ? 1 : 0).put_u32(part.permissions);
  writer.put_text(part.bytes);
  return std::move(writer).take();
}

FilePart decode_file_part(std::string_view bytes) {
  ByteReader reader(bytes, "part of a file");
  FilePart part;
  part.path = text(reader);
  part.is_first = reader.get_u8() != 0;
  part.is_last = reader.get_u8() != 0;
  part.permissions = reader.get_u32();
  part.bytes = text(reader);
  reader.finish();
  return part;
}

std::string encode(const Output& output) {
  ByteWriter writer;
  writer.put_i32(output.rank).put_u8(static_cast<std::uint8_t>(output.channel));
  writer.put_text(output.bytes);
  return std::move(writer).take();
}

Output decode_output(std::string_view bytes) {
  ByteReader reader(bytes, "output of a rank");
  Output output;
  output.rank = reader.get_i32();
  output.channel = reader.get_u8() == 0 ? Channel::kOut : Channel::kErr;
  output.bytes = text(reader);
  reader.finish();
  return output;
}

std::string encode(const Record& record) {
  ByteWriter writer;
  writer.put_text(record.name).put_text(record.bytes);
  return std::move(writer).take();
}

Record decode_record(std::string_view bytes) {
  ByteReader reader(bytes, "record of a rank");
  Record record;
  record.name = text(reader);
  record.bytes = text(reader);
  reader.finish();
  return record;
}

std::string encode(const GuardEvent& event) {
  ByteWriter writer;
  writer.put_i32(static_cast<std::int32_t>(event.kind)).put_i32(event.rank);
  writer.put_i32(event.pid).put_i32(event.value);
  writer.put_i32(event.detail.out_of_memory);
  writer.put_i32(static_cast<std::int32_t>(event.detail.container_start));
  writer.put_i64(event.detail.memory_limit);
  return std::move(writer).take();
}

GuardEvent decode_event(std::string_view bytes) {
  ByteReader reader(bytes, "event of a guard");
  GuardEvent event;
  const auto kind = reader.get_i32();
  if (kind < 0 || kind > static_cast<std::int32_t>(GuardEvent::Kind::kGone)) {
    throw Error(ErrorKind::kMismatch, fmt::format("unknown event {} of a guard", kind));
  }
  event.kind = static_cast<GuardEvent::Kind>(kind);
  event.rank = reader.get_i32();
  event.pid = reader.get_i32();
  event.value = reader.get_i32();
  event.detail.out_of_memory = reader.get_i32();
  const auto start = reader.get_i32();
  if (start < 0 || start > static_cast<std::int32_t>(ContainerStart::kInterrupted)) {
    throw Error(ErrorKind::kMismatch, fmt::format("unknown start {} of a container", start));
  }
  event.detail.container_start = static_cast<ContainerStart>(start);
  event.detail.memory_limit = reader.get_i64();
  reader.finish();
  return event;
}

std::string encode(const SignalOrder& order) {
  ByteWriter writer;
  writer.put_i32(order.signal).put_i32(order.rank);
  return std::move(writer).take();
}

SignalOrder decode_signal(std::string_view bytes) {
  ByteReader reader(bytes, "signal order");
  SignalOrder order;
  order.signal = reader.get_i32();
  order.rank = reader.get_i32();
  reader.finish();
  return order;
}

std::string encode(const RecordOrder& order) {
  ByteWriter writer;
  writer.put_i32(order.round).put_u32(static_cast<std::uint32_t>(order.ranks.size()));
  for (const Rank rank : order.ranks) writer.put_i32(rank);
  return std::move(writer).take();
}

RecordOrder decode_record_order(std::string_view bytes) {
  ByteReader reader(bytes, "order about records");
  RecordOrder order{.round = reader.get_i32()};
  for (auto left = reader.get_u32(); left > 0; --left) order.ranks.push_back(reader.get_i32());
  reader.finish();
  return order;
}

std::string encode(FrameKind kind, std::string_view payload) {
  ByteWriter writer;
  writer.put_u32(static_cast<std::uint32_t>(payload.size()));
  writer.put_u8(static_cast<std::uint8_t>(kind));
  writer.put_raw(payload);
  return std::move(writer).take();
}

std::optional<Frame> FrameReader::try_next() {
  const std::string_view rest = std::string_view(bytes_).substr(read_);
  if (rest.size() >= kHeader) {
    ByteReader header(rest.substr(0, kHeader), "frame");
    const std::size_t size = header.get_u32();
    const std::uint8_t kind = header.get_u8();
    if (size > static_cast<std::size_t>(kLongestFrame.value) || kind < 1 ||
        kind > static_cast<std::uint8_t>(FrameKind::kBeat)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format("bytes that are not a message of peal ({} bytes of kind {})", size, kind));
    }
    if (rest.size() - kHeader >= size) {
      read_ += kHeader + size;
      return Frame{static_cast<FrameKind>(kind), std::string(rest.substr(kHeader, size))};
    }
  }
  bytes_.erase(0, std::exchange(read_, 0));
  return std::nullopt;
}

}  // namespace peal::launch::agents
