// Runs a program in a sandbox: peal_without CALL=ERROR... -- PROGRAM ARGUMENT...
// Each named system call fails with its error, by a filter of the kernel (seccomp).
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

const std::map<std::string, unsigned> kCalls = {{"flock", SYS_flock},
                                                {"fsync", SYS_fsync},
                                                {"memfd_create", SYS_memfd_create},
                                                {"pidfd_open", SYS_pidfd_open},
                                                {"recvmsg", SYS_recvmsg},
                                                {"renameat2", SYS_renameat2},
                                                {"sched_getaffinity", SYS_sched_getaffinity}};
const std::map<std::string, unsigned> kErrors = {
    {"EINVAL", EINVAL}, {"EIO", EIO}, {"EMFILE", EMFILE}, {"EPERM", EPERM}};

std::vector<sock_filter> filter_of(const std::vector<std::string>& rules) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const std::string& rule : rules) {
    const std::size_t middle = rule.find('=');
    const unsigned call = kCalls.at(rule.substr(0, middle));
    const unsigned error = kErrors.at(rule.substr(middle + 1));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return filter;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> rules;
  int next = 1;
  for (; next < count && std::string(arguments[next]) != "--"; ++next) {
    rules.emplace_back(arguments[next]);
  }
  std::vector<sock_filter> filter = filter_of(rules);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("peal_without: seccomp");
    return 126;
  }
  ::execvp(arguments[next + 1], arguments + next + 1);
  std::perror(arguments[next + 1]);
  return 127;
}
