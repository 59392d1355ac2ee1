// SPDX-License-Identifier: BSD-3-Clause
#include "messages/programs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "context/errors.h"

namespace lapi {
namespace {

// Registering runs a program once and keeps only the list of its copies.
struct Block {
  long offset;
  unsigned long bytes;
};
struct Program {
  std::vector<Block> blocks;  // of one run, in order
  unsigned long bytes = 0;    // bytes of one run, packed
  long extent = 0;
  int users = 1;
};

constexpr int kMaxAtom = 1 << 20;
constexpr size_t kMostBlocks = size_t{1} << 24;

std::mutex programs_mutex;
std::map<const void*, std::unique_ptr<Program>> programs;

class Runner {
 public:
  Runner(const char* call, const lapi_dgsp_descr_t& description, Program& program)
      : call_(call), description_(description), program_(program) {}

  int run(long place, long position, int depth) {
    for (;;) {
      if (!has(place, 1)) return out_of_bounds(place);
      switch (description_.code[place]) {
        case LAPI_DGSM_COPY:
          if (!has(place, 3)) return out_of_bounds(place);
          if (const int error = copy(place + 1, position)) return error;
          place += 3;
          break;
        case LAPI_DGSM_MCOPY: {
          if (!has(place, 2)) return out_of_bounds(place);
          const long count = description_.code[place + 1];
          if (count < 0 || count > description_.code_size || !has(place, 2 + 2 * count)) {
            return out_of_bounds(place);
          }
          for (long i = 0; i < count; ++i) {
            if (const int error = copy(place + 2 + 2 * i, position)) return error;
          }
          place += 2 + 2 * count;
          break;
        }
        case LAPI_DGSM_GOSUB:
          if (!has(place, 4)) return out_of_bounds(place);
          if (depth + 1 >= std::max(description_.depth, 1)) {
            return fail(call_, LAPI_ERR_DGSP_STACK, "word %ld calls deeper than depth %d", place,
                        description_.depth);
          }
          for (long i = 0; i < description_.code[place + 1]; ++i) {
            const long moved = position + i * description_.code[place + 2];
            if (const int error = run(description_.code[place + 3], moved, depth + 1)) {
              return error;
            }
          }
          place += 4;
          break;
        case LAPI_DGSM_CONTROL: {
          if (!has(place, 2)) return out_of_bounds(place);
          const long operands = description_.code[place + 1];
          if (operands < 0 || !has(place, 2 + operands)) return out_of_bounds(place);
          place += 2 + operands;
          break;
        }
        case LAPI_DGSM_RETURN:
        case LAPI_DGSM_ITERATE:
          return LAPI_SUCCESS;
        default:
          return fail(call_, LAPI_ERR_DGSP_OPC, "operation %ld at word %ld",
                      description_.code[place], place);
      }
    }
  }

 private:
  bool has(long place, long words) const {
    return place >= 0 && words <= description_.code_size && place <= description_.code_size - words;
  }
  int out_of_bounds(long place) const {
    return fail(call_, LAPI_ERR_DGSP_BRANCH, "word %ld of %d", place, description_.code_size);
  }

  int copy(long place, long position) {
    const long bytes = description_.code[place];
    if (bytes < 0 || program_.blocks.size() >= kMostBlocks) {
      return fail(call_, LAPI_ERR_DGSP_COPY_SZ, "%ld bytes at word %ld", bytes, place);
    }
    if (bytes == 0) return LAPI_SUCCESS;
    program_.blocks.push_back(
        {position + description_.code[place + 1], static_cast<unsigned long>(bytes)});
    program_.bytes += static_cast<unsigned long>(bytes);
    return LAPI_SUCCESS;
  }

  const char* call_;
  const lapi_dgsp_descr_t& description_;
  Program& program_;
};

const Program* find(const void* handle) {
  const std::lock_guard lock(programs_mutex);
  const auto found = programs.find(handle);
  return found != programs.end() ? found->second.get() : nullptr;
}

// Calls visit(offset from the base, bytes) for each block of a range of the packed form.
template <typename Visit>
void for_each_block(const Program& program, unsigned long from, unsigned long bytes, Visit visit) {
  long base = static_cast<long>(from / program.bytes) * program.extent;
  unsigned long skip = from % program.bytes;
  while (bytes > 0) {
    for (const Block& block : program.blocks) {
      if (skip >= block.bytes) {
        skip -= block.bytes;
        continue;
      }
      const unsigned long now = std::min(block.bytes - skip, bytes);
      visit(base + block.offset + static_cast<long>(skip), now);
      skip = 0;
      bytes -= now;
      if (bytes == 0) return;
    }
    base += program.extent;
  }
}

}  // namespace

bool is_program(const void* handle) { return find(handle) != nullptr; }

int register_program(const char* call, const lapi_dgsp_descr_t* description, void** handle) {
  if (description == nullptr || description->code == nullptr || description->code_size <= 0) {
    return fail(call, LAPI_ERR_DGSP, "there is no program");
  }
  if (description->atom_size < 0 || description->atom_size > kMaxAtom) {
    return fail(call, LAPI_ERR_DGSP_ATOM, "atom_size %d", description->atom_size);
  }
  auto program = std::make_unique<Program>();
  program->extent = description->extent;
  if (const int error = Runner(call, *description, *program).run(0, 0, 0)) return error;
  if (program->bytes == 0) return fail(call, LAPI_ERR_DGSP, "the program copies nothing");
  const std::lock_guard lock(programs_mutex);
  *handle = program.get();
  programs.emplace(*handle, std::move(program));
  return LAPI_SUCCESS;
}

int reserve_program(const char* call, void* handle) {
  const std::lock_guard lock(programs_mutex);
  const auto found = programs.find(handle);
  if (found == programs.end())
    return fail(call, LAPI_ERR_DGSP, "%p is not a registered program", handle);
  ++found->second->users;
  return LAPI_SUCCESS;
}

int release_program(const char* call, void* handle) {
  const std::lock_guard lock(programs_mutex);
  const auto found = programs.find(handle);
  if (found == programs.end())
    return fail(call, LAPI_ERR_DGSP_FREE, "%p is not a registered program", handle);
  if (--found->second->users == 0) programs.erase(found);
  return LAPI_SUCCESS;
}

void gather(const void* handle, const void* base, unsigned long bytes, unsigned long from,
            char* packed) {
  const Program* program = find(handle);
  if (program == nullptr) return;
  for_each_block(*program, from, bytes, [&](long offset, unsigned long now) {
    std::memcpy(packed, static_cast<const char*>(base) + offset, now);
    packed += now;
  });
}

void scatter(const void* handle, const char* packed, unsigned long bytes, unsigned long from,
             void* base) {
  const Program* program = find(handle);
  if (program == nullptr) return;
  for_each_block(*program, from, bytes, [&](long offset, unsigned long now) {
    std::memcpy(static_cast<char*>(base) + offset, packed, now);
    packed += now;
  });
}

}  // namespace lapi
