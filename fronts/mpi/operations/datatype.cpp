// SPDX-License-Identifier: BSD-3-Clause
#include "operations/datatype.h"

#include <algorithm>
#include <new>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

// Neighbours of one element type become one.
void join_blocks(std::vector<Block>* blocks) {
  size_t kept = 0;
  for (size_t i = 0; i < blocks->size(); ++i) {
    const Block& block = (*blocks)[i];
    if (block.bytes == 0) continue;
    if (kept != 0) {
      Block& last = (*blocks)[kept - 1];
      if (last.element == block.element &&
          last.offset + static_cast<ptrdiff_t>(last.bytes) == block.offset) {
        last.bytes += block.bytes;
        continue;
      }
    }
    (*blocks)[kept++] = block;
  }
  blocks->resize(kept);
}

void describe(Datatype* type) {
  const std::vector<Block>& blocks = type->blocks;
  type->bytes = 0;
  type->low = 0;
  type->high = 0;
  type->element = blocks.empty() ? nullptr : blocks.front().element;
  for (const Block& block : blocks) {
    const ptrdiff_t end = block.offset + static_cast<ptrdiff_t>(block.bytes);
    type->low = type->bytes == 0 ? block.offset : std::min(type->low, block.offset);
    type->high = type->bytes == 0 ? end : std::max(type->high, end);
    type->bytes += block.bytes;
    if (block.element != type->element) type->element = nullptr;
  }
  type->solid_bytes = blocks.size() == 1 && blocks.front().offset == 0 &&
                              type->extent == static_cast<ptrdiff_t>(type->bytes)
                          ? type->bytes
                          : 0;
  type->stride = blocks.size() > 1 ? blocks[1].offset - blocks[0].offset : type->extent;
  type->is_regular = !blocks.empty();
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].bytes != blocks[0].bytes ||
        blocks[i].offset - blocks[i - 1].offset != type->stride) {
      type->is_regular = false;
      break;
    }
  }
}

int forget_type(MPI_Datatype type, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  datatypes.forget(type);
  return MPI_SUCCESS;
}

// A duplicate is described when it is used.
int do_not_copy(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

}  // namespace

constinit Datatypes datatypes;

// With the lock.
Datatype* Datatypes::add(MPI_Datatype type) {
  Datatype* made = nullptr;
  if (free_.empty()) {
    made = new Datatype;
  } else {
    made = free_.back();
    free_.pop_back();
  }
  made->handle.store(number_of(type), std::memory_order_relaxed);
  return made;
}

bool Datatypes::remember_to_forget(MPI_Datatype type) {
  if (keyval_ == MPI_KEYVAL_INVALID &&
      real::Type_create_keyval(do_not_copy, forget_type, &keyval_, nullptr) != MPI_SUCCESS) {
    return false;
  }
  return real::Type_set_attr(type, keyval_, nullptr) == MPI_SUCCESS;
}

const Datatype* Datatypes::describe_new(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  std::vector<Block> blocks;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (real::Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || !flatten(type, &blocks)) {
    return nullptr;
  }
  join_blocks(&blocks);
  const std::lock_guard lock(mutex_);
  std::atomic<Datatype*>& slot = slots_[hash(number_of(type))];
  for (Datatype* known = slot.load(std::memory_order_relaxed); known != nullptr;
       known = known->next.load(std::memory_order_relaxed)) {
    if (known->handle.load(std::memory_order_relaxed) == number_of(type)) return known;
  }
  if (element_of(type) == nullptr && !remember_to_forget(type)) return nullptr;
  Datatype* made = add(type);
  made->extent = extent;
  made->blocks = std::move(blocks);
  describe(made);
  made->next.store(slot.load(std::memory_order_relaxed), std::memory_order_relaxed);
  slot.store(made, std::memory_order_release);  // pairs with the acquire in find()
  return made;
}

void Datatypes::forget(MPI_Datatype type) {
  const std::lock_guard lock(mutex_);
  std::atomic<Datatype*>* link = &slots_[hash(number_of(type))];
  for (Datatype* known = link->load(std::memory_order_relaxed); known != nullptr;
       known = link->load(std::memory_order_relaxed)) {
    if (known->handle.load(std::memory_order_relaxed) == number_of(type)) {
      link->store(known->next.load(std::memory_order_relaxed), std::memory_order_release);
      known->handle.store(0, std::memory_order_relaxed);
      known->blocks.clear();
      free_.push_back(known);
      return;
    }
    link = &known->next;
  }
}

}  // namespace mobius::mpi
