// Messages to the process that writes the trace file: u32 type, u32 zero, u64 length, then as many bytes: numbers of 64
// bits, then a text or bytes.
// buddysim/capture/opencl/wire.py is the other end.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace capture {

enum class MessageType : uint32_t {
  HELLO = 1,     // version, process
  ALLOCATE,      // number, base, bytes
  FREE,          // number
  NAME,          // number; text
  COPY,          // kind (0 to the device, 1 from it, 2 on it), address, bytes, source
  FILL,          // address, bytes, byte value or 256
  KERNEL,        // launch_index, stream, shared bytes, code bytes, 3 of the grid, 3 of the block; name
  RECORDS,       // numbers of blocks, warps, ops, lines; the records
  KERNEL_END,    // lane accesses, those outside of buffers
  SNAPSHOT,      // launch_index, reasons (SnapshotReason, one or more)
  CONTENTS,      // number, offset; bytes
  SNAPSHOT_END,  // nothing
  UNTRACED,      // launch_index; a kernel and why it isn't in the trace
  NOTE,          // text: something that the trace doesn't know of
  COMPILE,       // PoCL's program; answered by u32 0, u32 length, path of a library, or u32 1, u32 length, a reason
  DONE,          // launches
  NATIVE,        // untraced, in PoCL: launch_index, 3 of the global size, 3 of the work-group (0: by PoCL); name
};

// The reason for which contents are sent.
enum SnapshotReason : uint64_t {
  PERIODIC = 1,  // at equal distances over the whole run
  AROUND_LAUNCH = 2,   // just before or just after a traced launch
  LAST = 4,     // perhaps the last contents: of all buffers, or of a buffer that the program releases
};

class Wire {
 public:
  bool connect(const char* path);
  bool open() const { return socket_ >= 0; }
  void leave();  // in a child that fork made: the connection is its parent's
  void send(MessageType type, const void* head, size_t head_bytes, const void* body = nullptr, size_t body_bytes = 0);
  void send(MessageType type, const std::vector<uint64_t>& numbers, const std::string& text = "");
  // The path of the compiled program; throws std::runtime_error with the reason.
  std::string compile(const std::vector<unsigned char>& program);

 private:
  void put(const void* data, size_t bytes);
  bool get(void* data, size_t bytes);
  int socket_ = -1;
};

}  // namespace capture
