// SPDX-License-Identifier: BSD-3-Clause

// Type maps from envelopes and contents (MPI-4 §5.1.13): what each constructor makes of the types
// that it was given.

#include <cstdint>
#include <vector>

#include "binding/real.h"
#include "operations/datatype.h"

namespace mobius::mpi {
namespace {

// The arguments of a constructor. Counts have one width with any of its calls.
class Contents {
 public:
  explicit Contents(MPI_Datatype type);
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents();

  bool is_read() const { return is_read_; }
  int combiner() const { return combiner_; }
  // The integers in the order of the constructor's arguments, addresses and large counts likewise.
  std::vector<int64_t> integers;
  std::vector<int64_t> addresses;
  std::vector<MPI_Datatype> types;
  bool has_large_counts = false;

 private:
  void read_small(MPI_Datatype type);
  void read_large(MPI_Datatype type);

  int combiner_ = MPI_COMBINER_NAMED;
  bool is_read_ = false;
};

bool is_named(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
         || combiner == MPI_COMBINER_VALUE_INDEX
#endif
      ;
}

Contents::Contents(MPI_Datatype type) {
#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
  read_large(type);
#else
  read_small(type);
#endif
}

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
void Contents::read_large(MPI_Datatype type) {
  MPI_Count counts[4] = {};
  if (real::Type_get_envelope_c(type, &counts[0], &counts[1], &counts[2], &counts[3], &combiner_) !=
      MPI_SUCCESS) {
    return;
  }
  is_read_ = true;
  if (is_named(combiner_)) return;
  std::vector<int> small(static_cast<size_t>(counts[0]) + 1);
  std::vector<MPI_Aint> places(static_cast<size_t>(counts[1]) + 1);
  std::vector<MPI_Count> large(static_cast<size_t>(counts[2]) + 1);
  types.resize(static_cast<size_t>(counts[3]));
  is_read_ =
      real::Type_get_contents_c(type, counts[0], counts[1], counts[2], counts[3], small.data(),
                                places.data(), large.data(), types.data()) == MPI_SUCCESS;
  has_large_counts = counts[2] != 0;
  integers.assign(small.begin(), small.end() - 1);
  addresses.assign(places.begin(), places.end() - 1);
  // Large counts are large in all arguments but those that no constructor has large.
  if (has_large_counts) {
    integers.assign(large.begin(), large.end() - 1);
    if (combiner_ == MPI_COMBINER_SUBARRAY || combiner_ == MPI_COMBINER_DARRAY) {
      addresses.assign(small.begin(), small.end() - 1);
    }
  }
}
#else
void Contents::read_small(MPI_Datatype type) {
  int counts[3] = {};
  if (real::Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &combiner_) !=
      MPI_SUCCESS) {
    return;
  }
  is_read_ = true;
  if (is_named(combiner_)) return;
  std::vector<int> small(static_cast<size_t>(counts[0]) + 1);
  std::vector<MPI_Aint> places(static_cast<size_t>(counts[1]) + 1);
  types.resize(static_cast<size_t>(counts[2]));
  is_read_ = real::Type_get_contents(type, counts[0], counts[1], counts[2], small.data(),
                                     places.data(), types.data()) == MPI_SUCCESS;
  integers.assign(small.begin(), small.end() - 1);
  addresses.assign(places.begin(), places.end() - 1);
}
#endif

// Derived types are handed out as handles of their own.
Contents::~Contents() {
  for (MPI_Datatype& type : types) {
    int integers_of = 0;
    int addresses_of = 0;
    int types_of = 0;
    int combiner = MPI_COMBINER_NAMED;
#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
    MPI_Count counts[4] = {};
    static_cast<void>(integers_of);
    static_cast<void>(addresses_of);
    static_cast<void>(types_of);
    const int read =
        real::Type_get_envelope_c(type, &counts[0], &counts[1], &counts[2], &counts[3], &combiner);
#else
    const int read =
        real::Type_get_envelope(type, &integers_of, &addresses_of, &types_of, &combiner);
#endif
    if (read == MPI_SUCCESS && !is_named(combiner)) static_cast<void>(real::Type_free(&type));
  }
}

// A type as part of another one.
struct Piece {
  std::vector<Block> blocks;
  ptrdiff_t extent = 0;
};

bool piece_of(MPI_Datatype type, Piece* piece) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (real::Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return false;
  piece->extent = extent;
  return flatten(type, &piece->blocks);
}

void put_at(std::vector<Block>* to, const Piece& piece, ptrdiff_t offset, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (const Block& block : piece.blocks) {
      const ptrdiff_t at = block.offset + offset + i * piece.extent;
      if (!to->empty() && to->back().element == block.element &&
          to->back().offset + static_cast<ptrdiff_t>(to->back().bytes) == at) {
        to->back().bytes += block.bytes;
      } else {
        to->push_back({at, block.bytes, block.element});
      }
    }
  }
}

// A grid of elements in one dimension more: `count` copies of what is there, `stride` apart.
void repeat(std::vector<Block>* blocks, int64_t count, ptrdiff_t stride) {
  const std::vector<Block> one = *blocks;
  blocks->clear();
  const Piece piece{one, stride};
  put_at(blocks, piece, 0, count);
}

void shift(std::vector<Block>* blocks, ptrdiff_t offset) {
  for (Block& block : *blocks) block.offset += offset;
}

bool is_fortran(int64_t order) { return order == MPI_ORDER_FORTRAN; }

// integers: dimensions, sizes, subsizes, starts, order.
void add_subarray(const Contents& from, const Piece& piece, std::vector<Block>* blocks) {
  // With large counts the number of dimensions and the order are apart from the counts.
  const bool is_large = from.has_large_counts;
  const auto dimensions = static_cast<size_t>(is_large ? from.addresses[0] : from.integers[0]);
  const int64_t* sizes = from.integers.data() + (is_large ? 0 : 1);
  const int64_t* subsizes = sizes + dimensions;
  const int64_t* starts = subsizes + dimensions;
  const int64_t order = is_large ? from.addresses[1] : starts[dimensions];
  *blocks = piece.blocks;
  ptrdiff_t stride = piece.extent;
  ptrdiff_t start = 0;
  for (size_t i = 0; i < dimensions; ++i) {
    const size_t d = is_fortran(order) ? i : dimensions - 1 - i;
    repeat(blocks, subsizes[d], stride);
    start += starts[d] * stride;
    stride *= sizes[d];
  }
  shift(blocks, start);
}

// One dimension of a distributed array: which indices are this process's.
struct Distribution {
  int64_t size;   // of the whole array
  int64_t block;  // consecutive indices, cyclically
  int64_t processes;
  int64_t place;  // of this process
};

void distribute(const Distribution& dimension, ptrdiff_t stride, std::vector<Block>* blocks) {
  const Piece piece{*blocks, stride};
  blocks->clear();
  const int64_t step = dimension.block * dimension.processes;
  for (int64_t first = dimension.place * dimension.block; first < dimension.size; first += step) {
    put_at(blocks, piece, first * stride, std::min(dimension.block, dimension.size - first));
  }
}

// integers: size, rank, dimensions, sizes, distributions, arguments, process grid, order.
void add_darray(const Contents& from, const Piece& piece, std::vector<Block>* blocks) {
  const bool is_large = from.has_large_counts;
  const std::vector<int64_t>& small = is_large ? from.addresses : from.integers;
  const int64_t rank = small[1];
  const auto dimensions = static_cast<size_t>(small[2]);
  const int64_t* sizes = is_large ? from.integers.data() : small.data() + 3;
  const int64_t* kinds = small.data() + (is_large ? 3 : 3 + dimensions);
  const int64_t* arguments = kinds + dimensions;
  const int64_t* grid = arguments + dimensions;
  const int64_t order = grid[dimensions];
  // The grid of processes is row-major, whatever the order of the array.
  std::vector<int64_t> places(dimensions);
  int64_t left = rank;
  for (size_t d = dimensions; d-- > 0;) {
    places[d] = left % grid[d];
    left /= grid[d];
  }
  *blocks = piece.blocks;
  ptrdiff_t stride = piece.extent;
  for (size_t i = 0; i < dimensions; ++i) {
    const size_t d = is_fortran(order) ? i : dimensions - 1 - i;
    Distribution dimension{sizes[d], sizes[d], 1, 0};
    if (kinds[d] != MPI_DISTRIBUTE_NONE) {
      dimension.processes = grid[d];
      dimension.place = places[d];
      const bool by_default = arguments[d] == MPI_DISTRIBUTE_DFLT_DARG;
      if (kinds[d] == MPI_DISTRIBUTE_BLOCK) {
        dimension.block = by_default ? (sizes[d] + grid[d] - 1) / grid[d] : arguments[d];
      } else {
        dimension.block = by_default ? 1 : arguments[d];
      }
    }
    distribute(dimension, stride, blocks);
    stride *= sizes[d];
  }
}

// Displacements and strides are addresses, or, where counts are large, counts like the others.
const int64_t* bytes_of(const Contents& from, size_t counts_before) {
  return from.has_large_counts ? from.integers.data() + counts_before : from.addresses.data();
}

bool add_struct(const Contents& from, std::vector<Block>* blocks) {
  const auto count = static_cast<size_t>(from.integers[0]);
  const int64_t* places = bytes_of(from, 1 + count);
  for (size_t i = 0; i < count; ++i) {
    Piece piece;
    if (!piece_of(from.types[i], &piece)) return false;
    put_at(blocks, piece, places[i], from.integers[1 + i]);
  }
  return true;
}

bool add_derived(const Contents& from, std::vector<Block>* blocks) {
  const std::vector<int64_t>& n = from.integers;
  if (from.combiner() == MPI_COMBINER_STRUCT) return add_struct(from, blocks);
  Piece piece;
  if (from.types.size() != 1 || !piece_of(from.types[0], &piece)) return false;
  const auto count = static_cast<size_t>(n.empty() ? 0 : n[0]);
  switch (from.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      *blocks = piece.blocks;
      return true;
    case MPI_COMBINER_CONTIGUOUS:
      put_at(blocks, piece, 0, n[0]);
      return true;
    case MPI_COMBINER_VECTOR:
      for (size_t i = 0; i < count; ++i) {
        put_at(blocks, piece, static_cast<int64_t>(i) * n[2] * piece.extent, n[1]);
      }
      return true;
    case MPI_COMBINER_HVECTOR:
      for (size_t i = 0; i < count; ++i) {
        put_at(blocks, piece, static_cast<int64_t>(i) * bytes_of(from, 2)[0], n[1]);
      }
      return true;
    case MPI_COMBINER_INDEXED:
      for (size_t i = 0; i < count; ++i) {
        put_at(blocks, piece, n[1 + count + i] * piece.extent, n[1 + i]);
      }
      return true;
    case MPI_COMBINER_HINDEXED:
      for (size_t i = 0; i < count; ++i) {
        put_at(blocks, piece, bytes_of(from, 1 + count)[i], n[1 + i]);
      }
      return true;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (size_t i = 0; i < count; ++i) put_at(blocks, piece, n[2 + i] * piece.extent, n[1]);
      return true;
    case MPI_COMBINER_HINDEXED_BLOCK:
      for (size_t i = 0; i < count; ++i) put_at(blocks, piece, bytes_of(from, 2)[i], n[1]);
      return true;
    case MPI_COMBINER_SUBARRAY:
      add_subarray(from, piece, blocks);
      return true;
    case MPI_COMBINER_DARRAY:
      add_darray(from, piece, blocks);
      return true;
    default:
      return false;
  }
}

// A predefined type without a name of its own (MPI_Type_create_f90_real() and its kin), as the one
// it is like.
bool add_unnamed(MPI_Datatype type, int combiner, std::vector<Block>* blocks) {
  int bytes = 0;
  if (real::Type_size(type, &bytes) != MPI_SUCCESS) return false;
  const ElementKind kind = combiner == MPI_COMBINER_F90_REAL      ? ElementKind::kReal
                           : combiner == MPI_COMBINER_F90_COMPLEX ? ElementKind::kComplex
                                                                  : ElementKind::kInteger;
  const Element* element = element_like(kind, static_cast<size_t>(bytes));
  if (element != nullptr) blocks->push_back({0, static_cast<size_t>(bytes), element});
  return element != nullptr;
}

bool add_named(MPI_Datatype type, std::vector<Block>* blocks) {
  const Element* element = element_of(type);
  if (element == nullptr) return false;
  if (element->kind == ElementKind::kPair) {
    blocks->push_back({0, element->first_bytes, element});
    blocks->push_back({element->second_offset, element->second_bytes, element});
  } else {
    blocks->push_back({0, element->bytes, element});
  }
  return true;
}

}  // namespace

bool flatten(MPI_Datatype type, std::vector<Block>* blocks) {
  const Contents contents(type);
  if (!contents.is_read()) return false;
  if (contents.combiner() == MPI_COMBINER_NAMED) return add_named(type, blocks);
  if (is_named(contents.combiner())) return add_unnamed(type, contents.combiner(), blocks);
  return add_derived(contents, blocks);
}

}  // namespace mobius::mpi
