// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The operations that ranks repeat when one of them dies.

namespace faults {

class Job;

// one_sided.cpp
void contiguous(Job& job);
void strided(Job& job);
void pieces(Job& job);
void spans(Job& job);
void signals(Job& job);
void moved(Job& job);
void accumulate(Job& job);
void accumulate_words(Job& job);
void accumulate_pieces(Job& job);
void fetch_add(Job& job);
void swaps(Job& job);
void exposed(Job& job);
void exposing(Job& job);
void tested(Job& job);
void asked_target(Job& job);
void asking_origin(Job& job);
void move_pages(Job& job);  // before moved()

// together.cpp
void barrier(Job& job);
void allocation(Job& job);
void local_allocation(Job& job);
void objects(Job& job);
void split(Job& job);
void shrink(Job& job);
void counters(Job& job);
void mutex(Job& job);
void word_lock(Job& job);
void held_mutex(Job& job);
void held_exclusive(Job& job);
void held_shared(Job& job);
void lock_all(Job& job);
void access_lock(Job& job);
void messages(Job& job);
void large_messages(Job& job);
void heap(Job& job);
void notify(Job& job);
void wait_until(Job& job);
void epochs(Job& job);
void fence(Job& job);

// collectives.cpp
void broadcast(Job& job);
void gather(Job& job);
void scatter(Job& job);
void alltoall(Job& job);
void alltoallv(Job& job);
void reduce(Job& job);
void scan(Job& job);
void allreduce(Job& job);

}  // namespace faults
