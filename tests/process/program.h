// Runs a program as a child process, bin/rustqueued unless another is named, and reads what it says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rq::test {

// A directory that goes away with the test.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const;  // returns the path

 private:
  std::string root_;
};

class Program {
 public:
  enum class Stderr : std::uint8_t { pipe, terminal };
  Program(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment = {},
          const char* path = RQ_PROGRAM, Stderr kind = Stderr::pipe);
  ~Program();  // kills it
  Program(const Program&) = delete;

  // Waits for a line of stdout that contains the text, and returns it; empty when the program ended or said nothing for long.
  std::string wait_for_line(const std::string& text);
  void signal(int number);
  int wait();  // exit status, 128 + signal for a killed one; reads both outputs to their ends
  bool running();
  int pid() const { return pid_; }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  bool read_some();  // false at the end of both, or after a long silence

  int pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
  int status_ = -1;
  std::string out_, err_;
};

std::string read_text(const std::string& path);
// The number behind "key=" in a log line.
int field(const std::string& line, const std::string& key);
// A TCP connection to that port of this machine: writes, and reads until `count` bytes or the end.
class Connection {
 public:
  explicit Connection(int port);
  ~Connection();
  void send(const std::string& bytes);
  std::string receive(std::size_t count);

 private:
  int fd_;
};

}  // namespace rq::test
