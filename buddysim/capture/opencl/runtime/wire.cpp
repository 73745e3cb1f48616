#include "wire.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace capture {

bool Wire::connect(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return false;
  strcpy(address.sun_path, path);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ >= 0 && ::connect(socket_, (sockaddr*)&address, sizeof address) == 0) return true;
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  return false;
}

void Wire::leave() {
  if (open()) close(socket_);
  socket_ = -1;
}

void Wire::put(const void* data, size_t bytes) {
  const char* at = (const char*)data;
  while (bytes > 0 && open()) {
    ssize_t n = ::send(socket_, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {  // the connection is closed: the program continues untraced
      close(socket_);
      socket_ = -1;
      return;
    }
    at += n, bytes -= n;
  }
}

bool Wire::get(void* data, size_t bytes) {
  char* at = (char*)data;
  while (bytes > 0 && open()) {
    ssize_t n = recv(socket_, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= n;
  }
  return bytes == 0;
}

void Wire::send(MessageType type, const void* head, size_t head_bytes, const void* body, size_t body_bytes) {
  struct {
    uint32_t type, zero;
    uint64_t bytes;
  } frame = {uint32_t(type), 0, head_bytes + body_bytes};
  put(&frame, sizeof frame);
  put(head, head_bytes);
  put(body, body_bytes);
}

void Wire::send(MessageType type, const std::vector<uint64_t>& numbers, const std::string& text) {
  send(type, numbers.data(), 8 * numbers.size(), text.data(), text.size());
}

std::string Wire::compile(const std::vector<unsigned char>& program) {
  send(MessageType::COMPILE, program.data(), program.size());
  uint32_t answer[2];
  if (!get(answer, sizeof answer)) throw std::runtime_error("the capture has ended");
  std::string text(answer[1], 0);
  if (!get(text.data(), text.size())) throw std::runtime_error("the capture has ended");
  if (answer[0]) throw std::runtime_error(text);
  return text;
}

}  // namespace capture
