#include "tests/process/program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/check.h"

namespace rq::test {

namespace {
constexpr int kSilenceMsMax = 200'000;  // only ends what hangs

// The two ends of a terminal: what is written to the second is read from the first.
void open_terminal(int (&ends)[2]) {
  char name[64];
  ends[0] = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  RQ_CHECK(ends[0] >= 0 && ::grantpt(ends[0]) == 0 && ::unlockpt(ends[0]) == 0);
  RQ_CHECK(::ptsname_r(ends[0], name, sizeof name) == 0);
  ends[1] = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  RQ_CHECK(ends[1] >= 0);
}

}  // namespace

ScratchDirectory::ScratchDirectory() : root_((std::filesystem::temp_directory_path() / "rq_process_XXXXXX").string()) {
  RQ_CHECK(::mkdtemp(root_.data()) != nullptr);
}
ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}
std::string ScratchDirectory::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

Program::Program(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
                 const char* path, Stderr kind) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), path);
  std::vector<std::string> settings;
  for (const auto& [name, value] : environment) {
    std::string setting = name;
    setting += '=';
    setting += value;
    settings.push_back(setting);
  }
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& setting : settings) envp.push_back(setting.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  int out[2], err[2];
  RQ_CHECK(::pipe2(out, O_CLOEXEC) == 0);
  if (kind == Stderr::terminal) {
    open_terminal(err);
  } else {
    RQ_CHECK(::pipe2(err, O_CLOEXEC) == 0);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  RQ_CHECK(::posix_spawn(&pid_, path, &actions, nullptr, argv.data(), envp.data()) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
}

Program::~Program() {
  if (status_ < 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_fd_ >= 0) ::close(out_fd_);
  if (err_fd_ >= 0) ::close(err_fd_);
}

bool Program::read_some() {
  pollfd sources[2] = {{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
  if ((out_fd_ < 0 && err_fd_ < 0) || ::poll(sources, 2, kSilenceMsMax) <= 0) return false;
  int* fds[2] = {&out_fd_, &err_fd_};
  std::string* texts[2] = {&out_, &err_};
  for (int i = 0; i < 2; ++i) {
    if (sources[i].revents == 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(*fds[i], buffer, sizeof buffer);
    if (got > 0) {
      texts[i]->append(buffer, static_cast<std::size_t>(got));
    } else {
      ::close(*fds[i]);
      *fds[i] = -1;
    }
  }
  return true;
}

std::string Program::wait_for_line(const std::string& text) {
  do {
    std::istringstream lines(out_);
    std::string line;
    while (std::getline(lines, line)) {
      if (!lines.eof() && line.find(text) != std::string::npos) return line;
    }
  } while (read_some());
  return {};
}

void Program::signal(int number) { ::kill(pid_, number); }

bool Program::running() {
  if (status_ >= 0) return false;
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == 0;
}

int Program::wait() {
  while (read_some()) {
  }
  if (status_ < 0) {
    int raw = 0;
    if (out_fd_ >= 0 || err_fd_ >= 0) ::kill(pid_, SIGKILL);  // silent for too long
    ::waitpid(pid_, &raw, 0);
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  }
  return status_;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int field(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(" " + key + "=");
  return at == std::string::npos ? -1 : std::atoi(line.c_str() + at + key.size() + 2);
}

Connection::Connection(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  RQ_CHECK(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}
Connection::~Connection() { ::close(fd_); }
void Connection::send(const std::string& bytes) {
  RQ_CHECK(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}
std::string Connection::receive(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t at = 0;
  while (at < count) {
    const ssize_t got = ::recv(fd_, bytes.data() + at, count - at, 0);
    if (got <= 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

}  // namespace rq::test
