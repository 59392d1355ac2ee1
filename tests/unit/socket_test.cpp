// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "job/bootstrap/local_protocol.h"
#include "os/file/unix_socket.h"

namespace mobius::os {
namespace {

job::Secret unused_secret() {
  job::Secret secret{};
  EXPECT_EQ(job::make_secret(&secret), MOB_OK);
  return secret;
}

TEST(UnixSocket, ConnectingToNobodySaysSo) {
  sockaddr_un address{};
  const socklen_t length = job::job_address(unused_secret(), &address);
  UnixSocket socket;
  UnixSocket::Problem problem{};
  EXPECT_EQ(socket.connect(address, length, &problem), MOB_ERR_SYSTEM);
  EXPECT_EQ(problem, UnixSocket::Problem::kAbsent);
  EXPECT_NE(std::string(mob_last_error()).find("Connection refused"), std::string::npos);
  EXPECT_FALSE(socket.is_open());
}

// A child process that is connected to `listener`, until either of them ends.
class Connected : public testing::Test {
 protected:
  void SetUp() override {
    sockaddr_un address{};
    const socklen_t length = job::job_address(unused_secret(), &address);
    bool taken = false;
    ASSERT_EQ(listener_.listen(address, length, &taken), MOB_OK);
    ASSERT_EQ(pipe(ready_), 0);
    child_ = fork();
    if (child_ == 0) {
      UnixSocket socket;
      if (socket.connect(address, length) != MOB_OK) _exit(1);
      socket.kill_on_close(true);
      // A message of its own does not end it.
      char word = 0;
      int none = -1;
      if (let_go_) socket.kill_on_close(false);
      if (socket.send("x", 1) != MOB_OK || write(ready_[1], "y", 1) != 1) _exit(2);
      if (let_go_) {
        static_cast<void>(socket.receive(&word, 1, &none));  // until the other side is closed
        _exit(7);
      }
      while (true) pause();
    }
    char word = 0;
    ASSERT_EQ(read(ready_[0], &word, 1), 1);
    pid_t pid = 0;
    bool is_empty = true;
    ASSERT_EQ(listener_.accept(&peer_, &pid, &is_empty), MOB_OK);
    ASSERT_FALSE(is_empty);
    int none = -1;
    ASSERT_EQ(peer_.receive(&word, 1, &none), MOB_OK);
  }
  int status_of_child() const {
    int status = 0;
    waitpid(child_, &status, 0);
    return status;
  }

  UnixListener listener_;
  UnixSocket peer_;
  int ready_[2] = {-1, -1};
  pid_t child_ = 0;
  bool let_go_ = false;
};

TEST_F(Connected, IsKilledWhenTheOtherSideCloses) {
  EXPECT_EQ(waitpid(child_, nullptr, WNOHANG), 0);
  peer_.close();
  const int status = status_of_child();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

class ConnectedAndLetGo : public Connected {
 protected:
  ConnectedAndLetGo() { let_go_ = true; }
};

TEST_F(ConnectedAndLetGo, Survives) {
  peer_.close();
  const int status = status_of_child();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

}  // namespace
}  // namespace mobius::os
