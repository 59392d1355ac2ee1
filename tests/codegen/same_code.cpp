// SPDX-License-Identifier: BSD-3-Clause

// Pairs of functions, in C and in C++, for check_same_code.py to compare.

#include <mobius/mobius.hpp>

using Word = uint64_t;
using Half = uint32_t;

#define MOB_PAIR(name, result, type, in_c, in_cxx)                          \
  extern "C" result c_##name(mob_rank_t rank, type* at, type a, type b);    \
  extern "C" result c_##name(mob_rank_t rank, type* at, type a, type b) {   \
    static_cast<void>(rank), static_cast<void>(a), static_cast<void>(b);    \
    in_c;                                                                   \
  }                                                                         \
  extern "C" result cxx_##name(mob_rank_t rank, type* at, type a, type b);  \
  extern "C" result cxx_##name(mob_rank_t rank, type* at, type a, type b) { \
    static_cast<void>(rank), static_cast<void>(a), static_cast<void>(b);    \
    const mob::Pointer<type> p(rank, at);                                   \
    in_cxx;                                                                 \
  }

#define MOB_FETCH(type, call) \
  type old;                   \
  mob::check(call);           \
  return old

MOB_PAIR(put8, void, Word, mob::check(mob_put8(rank, at, a)), p.put(a))
MOB_PAIR(put4, void, Half, mob::check(mob_put4(rank, at, a)), p.put(a))
MOB_PAIR(put2, void, uint16_t, mob::check(mob_put2(rank, at, a)), p.put(a))
MOB_PAIR(put1, void, uint8_t, mob::check(mob_put1(rank, at, a)), p.put(a))
MOB_PAIR(put8_third, void, Word, mob::check(mob_put8(rank, at + 3, a)), (p + 3).put(a))
MOB_PAIR(get8, Word, Word, MOB_FETCH(Word, mob_get8(rank, at, &old)), return p.get())
MOB_PAIR(get4, Half, Half, MOB_FETCH(Half, mob_get4(rank, at, &old)), return p.get())
MOB_PAIR(fetch_add8, Word, Word, MOB_FETCH(Word, mob_fetch_add8(rank, at, a, &old)),
         return p.fetch_add(a))
MOB_PAIR(fetch_add4, Half, Half, MOB_FETCH(Half, mob_fetch_add4(rank, at, a, &old)),
         return p.fetch_add(a))
MOB_PAIR(swap8, Word, Word, MOB_FETCH(Word, mob_swap8(rank, at, a, &old)), return p.swap(a))
MOB_PAIR(compare_swap8, Word, Word, MOB_FETCH(Word, mob_compare_swap8(rank, at, a, b, &old)),
         return p.compare_swap(a, b))
MOB_PAIR(wait_until, void, Word, mob::check(mob_wait_until_u8(at, MOB_GE, a)),
         mob::wait_until(p.address(), MOB_GE, a))
// Other types too, with the same calls.
MOB_PAIR(put_double, void, double, mob::check(mob_put8(rank, at, std::bit_cast<uint64_t>(a))),
         p.put(a))
MOB_PAIR(loop, void, Word, for (Word i = 0; i < a; ++i) mob::check(mob_put8(rank, at + i, b)),
         for (Word i = 0; i < a; ++i)(p + static_cast<std::ptrdiff_t>(i)).put(b))
