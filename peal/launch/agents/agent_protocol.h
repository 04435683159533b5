// The messages between the launcher and an agent, the process that starts and guards ranks on
// another host. The bytes travel through pipes that ssh, srun or another engine carries, so that no
// value crosses a shell or a command line. Used by agent.cpp and agent_guard.cpp.
//
// The agent begins with one line of text, the banner. A login shell may print something before it.
// The launcher compares the versions. After that, both sides send frames: u32 size of the payload,
// u8 kind, payload. The launcher sends kBegin, and the agent answers with kReady.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/cores.h"
#include "peal/launch/guard_messages.h"
#include "peal/launch/screen.h"

namespace peal::launch::agents {

/// The version of the messages: raise it with every change of the messages.
inline constexpr int kProtocol = 8;

/// The largest payload. A larger one is a mistake, or the peer is another program.
inline constexpr Bytes kLongestFrame = 256_MiB;

/// The first line of an agent.
struct Banner {
  int protocol = kProtocol;
  std::string version;  // of peal
  friend bool operator==(const Banner&, const Banner&) = default;
};

/// "PEAL-AGENT 1 0.3.0" and a newline.
std::string encode(const Banner& banner);
/// Nothing for any other line. `line` has no newline.
std::optional<Banner> decode_banner(std::string_view line);

enum class FrameKind : std::uint8_t {
  // From the launcher:
  kBegin = 1,    // Begin
  kStart,        // a RankCommand
  kSignal,       // SignalOrder: a signal to one rank
  kPassOn,       // SignalOrder: a signal to all ranks
  kStop,         // SignalOrder: the same, and ranks that remain after the grace are killed. Also
                 // the last order before the launcher closes the connection
  kAsk,          // SignalOrder: for Guard::ask_to_stop
  kWarn,         // sets the stop flags of all ranks
  kKill,         // all ranks are killed
  kCollect,      // RecordOrder: send records of the ranks
  kForget,       // RecordOrder: remove the records of a round, if their folder is private
  kFile,         // FilePart, after kBegin
  kFilesEnd,     // there are no more files
  kStartReader,  // a RankCommand of the rank whose stdin follows
  kInput,        // bytes of this stdin; empty: its end
  // From the agent:
  kReady,        // Ready
  kEvent,        // a GuardEvent
  kOutput,       // Output
  kRecord,       // Record
  kCollected,    // all records are sent
  kEnding,       // text: a signal has ended the agent, which ends its ranks
  kInputTaken,   // the rank has room for the next kInput
  kInputClosed,  // the rank reads no more
  // From both:
  kBeat,  // a heartbeat, empty
};

struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::string payload{};
};

/// How an agent learns the addresses of its own host and of the launcher's host. Only the engine
/// that has started the agent counts: other engines may have left variables in the environment.
enum class AddressSource : std::uint8_t {
  kNone,   // the agent is on the launcher's machine
  kSsh,    // SSH_CONNECTION
  kSlurm,  // SLURM_LAUNCH_NODE_IPADDR, and this host's address towards it
};

/// A command that ranks of the host execute.
struct WantedCommand {
  std::vector<std::string> words{};  // the program and its arguments
  std::string path{};                // the PATH of these ranks; empty: that of Begin::environment
  friend bool operator==(const WantedCommand&, const WantedCommand&) = default;
};

/// What the ranks of one host need there. The host is refused if something is missing.
struct HostNeeds {
  std::vector<WantedCommand> commands{};
  std::vector<std::string> images{};  // of containers
};

/// The first frame of the launcher. The agent checks it before any rank starts.
struct Begin {
  std::string job{};                                 // PEAL_JOB
  std::vector<WantedCommand> commands{};             // of the host's ranks, each once
  std::map<std::string, std::string> environment{};  // of the ranks, without the variables of the
                                                     // host; for PATH and PEAL_FLIGHT_DIR
  std::string directory{};                           // in which ranks start
  bool has_files = false;                            // kFile and kFilesEnd follow
  Timeout grace{};                                   // between SIGTERM and SIGKILL
  Timeout silence{};  // after this time without a frame, the launcher is gone
  AddressSource addresses = AddressSource::kNone;
  std::vector<std::string> images{};  // of the containers of the host's ranks
  std::string container_engine{};     // as for containers::find_engine
  friend bool operator==(const Begin&, const Begin&) = default;
};

/// The answer: whether ranks can start, and the facts of the host.
struct FoundCommand {
  std::string program{};               // the path
  std::vector<std::string> command{};  // with an interpreter, if the script needs one
  friend bool operator==(const FoundCommand&, const FoundCommand&) = default;
};

struct Ready {
  int exit_code = 0;                         // 0: all commands can run; else as in a shell
  std::string problem{};                     // why a command cannot run
  std::vector<FoundCommand> commands{};      // in the order of Begin::commands
  std::map<std::string, std::string> own{};  // variables that belong to the host: HOME, USER
  std::vector<Core> cores{};
  std::optional<double> quota{};   // CPUs, if a cgroup limits the time
  std::uint16_t port = 0;          // reserved for rank 0
  std::string address{};           // of this host, as the launcher reaches it; empty: unknown
  std::string launcher_address{};  // of the launcher, as this host sees it; empty: unknown
  std::string records{};           // the folder for records; empty: none
  std::string container_engine{};  // the path of podman or docker, if there are images
  std::string notice{};            // what the user should know
  friend bool operator==(const Ready&, const Ready&) = default;
};

/// A part of a file that the launcher copies to the host. A last part may be empty.
struct FilePart {
  std::string path{};  // relative to Begin::directory, or absolute
  bool is_first = false;
  bool is_last = false;
  std::uint32_t permissions = 0;
  std::string bytes{};
  friend bool operator==(const FilePart&, const FilePart&) = default;
};

/// Bytes that a rank has written. An empty text: the end of this output.
struct Output {
  Rank rank = 0;
  Channel channel = Channel::kOut;
  std::string bytes{};
  friend bool operator==(const Output&, const Output&) = default;
};

/// A file of the records of the ranks.
struct Record {
  std::string name;
  std::string bytes;
  friend bool operator==(const Record&, const Record&) = default;
};

/// Errors of each decode: mismatch for anything that `encode` did not make.
std::string encode(const Begin& begin);
Begin decode_begin(std::string_view bytes);
std::string encode(const Ready& ready);
Ready decode_ready(std::string_view bytes);
std::string encode(const FilePart& part);
FilePart decode_file_part(std::string_view bytes);
std::string encode(const Output& output);
Output decode_output(std::string_view bytes);
std::string encode(const Record& record);
Record decode_record(std::string_view bytes);
std::string encode(const GuardEvent& event);
GuardEvent decode_event(std::string_view bytes);
/// A signal, and the rank if it is for one.
struct SignalOrder {
  int signal = 0;
  Rank rank = -1;
  friend bool operator==(const SignalOrder&, const SignalOrder&) = default;
};
std::string encode(const SignalOrder& order);
SignalOrder decode_signal(std::string_view bytes);

/// Which records are meant.
struct RecordOrder {
  int round = 0;              // of an elastic job, whose rounds have folders; 0: the job has none
  std::vector<Rank> ranks{};  // empty: all ranks that the agent has started
  friend bool operator==(const RecordOrder&, const RecordOrder&) = default;
};
std::string encode(const RecordOrder& order);
RecordOrder decode_record_order(std::string_view bytes);

/// A frame as bytes.
std::string encode(FrameKind kind, std::string_view payload);

/// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  void feed(std::string_view bytes) { bytes_.append(bytes); }
  /// The next whole frame. Errors: mismatch for an unknown kind, or a payload that is too long.
  std::optional<Frame> try_next();

 private:
  std::string bytes_;
  std::size_t read_ = 0;  // bytes of bytes_ that are consumed
};

}  // namespace peal::launch::agents
