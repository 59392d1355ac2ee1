/* SPDX-License-Identifier: BSD-3-Clause */

/* Processes that join a running job, for docs/guide/08-growing-and-shrinking.md:
 *   mobius run -n 1 dynamic_bench spawn N        how long N processes take to be there
 *   mobius run -n N dynamic_bench accept NAME    how long two jobs take to connect; the other one
 *   mobius run -n N dynamic_bench connect NAME   is the second command
 *   mobius run -n 2 dynamic_bench compare HOW    operations of two processes that were started
 *                                                together and of one with one that it spawned
 *                                                (HOW spawned), or that another job is (connected,
 *                                                joined), by turns */

#include <mobius/mobius.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SPAWNS = 9, ROUNDS = 15, MOST_CHILDREN = 64, BYTES = 1 << 16 };

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare_doubles);
  return values[count / 2];
}

/* Spawning. */

/* Both sides: the parent puts into a word of each child. */
static void put_into_children(mob_bridge_t bridge, int is_child) {
  void* words[MOST_CHILDREN + 1];
  void* word = NULL;
  mob_team_t all;
  mob_rank_t child;
  check(mob_bridge_merge(bridge, 0, &all));
  if (is_child) check(mob_local_alloc(sizeof(uint64_t), 0, &word));
  check(mob_publish(all, word, words));
  for (child = 1; !is_child && child < mob_team_size(all); ++child) {
    check(mob_put8(mob_team_number(all, child), words[child], 1));
  }
  check(mob_flush_all());
  if (is_child) check(mob_wait_until_u8(word, MOB_EQ, 1));
  check(mob_team_free(all));
}

static void spawn_children(const char* program, mob_rank_t count) {
  const char* argv[] = {"spawn", NULL};
  double spawn[SPAWNS];
  double put[SPAWNS];
  int i;
  for (i = -1; i < SPAWNS; ++i) { /* the first is not counted: it loads what later ones reuse */
    mob_bridge_t bridge;
    const double begin = now_ns();
    double spawned;
    check(mob_spawn(MOB_TEAM_WORLD, program, argv, count, NULL, &bridge));
    spawned = now_ns();
    put_into_children(bridge, 0);
    if (i >= 0) {
      spawn[i] = spawned - begin;
      put[i] = now_ns() - begin;
    }
    check(mob_bridge_disconnect(bridge));
  }
  printf("spawn %d: %.3f ms, put %.3f ms\n", (int)count, median(spawn, SPAWNS) / 1e6,
         median(put, SPAWNS) / 1e6);
}

/* Connecting. */

/* Both sides: the first process of the job that accepts puts into a word of each of the other. */
static void put_into_others(mob_bridge_t bridge, int accepts) {
  mob_team_t all;
  mob_mem_t mem;
  mob_rank_t member;
  check(mob_bridge_merge(bridge, 0, &all));
  check(mob_team_alloc(all, sizeof(uint64_t), 0, &mem));
  for (member = mob_size(); accepts && mob_rank() == 0 && member < mob_team_size(all); ++member) {
    void* word;
    check(mob_mem_address(mem, mob_team_number(all, member), 0, &word));
    check(mob_put8(mob_team_number(all, member), word, 1));
  }
  check(mob_flush_all());
  if (!accepts) check(mob_wait_until_u8(mob_mem_local(mem), MOB_EQ, 1));
  check(mob_mem_free(mem));
  check(mob_team_free(all));
}

static mob_bridge_t connect_to(const char* name) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_status_t status = MOB_ERR_PEER;
  int i;
  for (i = 0; i < 10000 && status == MOB_ERR_PEER; ++i) { /* until the port is open */
    status = mob_connect(MOB_TEAM_WORLD, name, NULL, &bridge);
    if (status != MOB_OK) usleep(1000);
  }
  check(status);
  return bridge;
}

static void connect_jobs(const char* name, int accepts) {
  mob_port_t port = MOB_PORT_NONE;
  double connected[SPAWNS];
  double put[SPAWNS];
  int i;
  if (accepts && mob_rank() == 0) check(mob_port_open(name, &port, NULL));
  for (i = -1; i < SPAWNS; ++i) { /* the first is not counted: the other job may come late */
    mob_bridge_t bridge;
    const double begin = now_ns();
    double met;
    if (accepts) {
      check(mob_accept(MOB_TEAM_WORLD, port, NULL, &bridge));
    } else {
      bridge = connect_to(name);
    }
    met = now_ns();
    put_into_others(bridge, accepts);
    if (i >= 0) {
      connected[i] = met - begin;
      put[i] = now_ns() - begin;
    }
    check(mob_bridge_disconnect(bridge));
  }
  check(mob_port_close(port));
  if (!accepts || mob_rank() != 0) return;
  printf("connect %d: %.3f ms, put %.3f ms\n", (int)mob_size(), median(connected, SPAWNS) / 1e6,
         median(put, SPAWNS) / 1e6);
}

/* Comparing. */

typedef struct {
  mob_team_t team; /* of two */
  mob_mutexes_t mutexes;
  mob_rank_t other; /* its number */
  int is_left;      /* the one that measures */
  uint64_t* here;   /* BYTES */
  uint64_t* there;
  uint64_t turn;
} pair_t;

static uint64_t arrived; /* messages, counted by whichever thread runs the handler */

static void on_message(const mob_message_t* message, void* argument, mob_delivery_t* delivery) {
  (void)message;
  (void)argument;
  (void)delivery;
  __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
}

static void make_pair(pair_t* pair, mob_team_t team, int is_left) {
  mob_mem_t mem;
  void* there;
  memset(pair, 0, sizeof *pair);
  pair->team = team;
  pair->is_left = is_left;
  pair->other = mob_team_number(team, 1 - mob_team_rank(team));
  check(mob_team_alloc(team, BYTES, 0, &mem));
  check(mob_mem_address(mem, pair->other, 0, &there));
  check(mob_mutexes_create(team, 1, &pair->mutexes));
  pair->here = mob_mem_local(mem);
  pair->there = there;
}

static void put8(pair_t* pair) {
  if (pair->is_left) {
    check(mob_put8(pair->other, pair->there, 1));
    check(mob_flush(pair->other));
  }
}

static void get8(pair_t* pair) {
  uint64_t got;
  if (pair->is_left) check(mob_get8(pair->other, pair->there, &got));
}

static void add8(pair_t* pair) {
  uint64_t old;
  if (pair->is_left) check(mob_fetch_add8(pair->other, pair->there, 1, &old));
}

static void put64k(pair_t* pair) {
  static unsigned char from[BYTES - 64];
  if (pair->is_left) check(mob_put(pair->other, pair->there + 8, from, sizeof from));
}

static void put_and_poll(pair_t* pair) {
  uint64_t seen = 0;
  ++pair->turn;
  if (pair->is_left) check(mob_put8(pair->other, pair->there + 1, pair->turn));
  while (seen != pair->turn) check(mob_get8(mob_rank(), pair->here + 1, &seen));
  if (!pair->is_left) check(mob_put8(pair->other, pair->there + 1, pair->turn));
}

static void message8(pair_t* pair) {
  static uint64_t wanted; /* one more in each turn, at both sides */
  ++wanted;
  if (pair->is_left) check(mob_message_send(pair->other, 1, &wanted, 8, NULL, 0, NULL));
  while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) != wanted) check(mob_poll());
  if (!pair->is_left) check(mob_message_send(pair->other, 1, &wanted, 8, NULL, 0, NULL));
}

static void barrier(pair_t* pair) { check(mob_team_barrier(pair->team)); }

static void allreduce(pair_t* pair) {
  double mine = 1;
  double sum;
  check(mob_allreduce(pair->team, MOB_SUM, MOB_DOUBLE, &mine, &sum, 1));
}

static void lock(pair_t* pair) {
  if (pair->is_left) {
    check(mob_mutex_lock(pair->mutexes, 0, pair->other, NULL));
    check(mob_mutex_unlock(pair->mutexes, 0, pair->other));
  }
}

static const struct {
  const char* name;
  void (*run)(pair_t* pair);
  int times;
} operations[] = {
    {"put of 8 bytes, flush", put8, 100000},
    {"get of 8 bytes", get8, 100000},
    {"fetch-and-add of 8 bytes", add8, 50000},
    {"put of 64 KiB", put64k, 1000},
    {"put to a polling peer and back", put_and_poll, 10000},
    {"message of 8 bytes and back", message8, 5000},
    {"lock and unlock", lock, 20000},
    {"barrier", barrier, 10000},
    {"allreduce of a double", allreduce, 10000},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static double run(pair_t* pair, int operation) {
  double begin;
  double ns;
  int i;
  check(mob_team_barrier(pair->team));
  for (i = 0; i < operations[operation].times / 10; ++i) operations[operation].run(pair);
  begin = now_ns();
  for (i = 0; i < operations[operation].times; ++i) operations[operation].run(pair);
  ns = (now_ns() - begin) / operations[operation].times;
  check(mob_team_barrier(pair->team));
  return ns;
}

/* Each pair on two processors; the third process sleeps in the barrier of its pair. */
static void bind_to(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((size_t)processor, &one);
  (void)sched_setaffinity(0, sizeof one, &one);
}

/* `together` and `spawned` are null in a process that is in only one of the pairs. */
static void compare(pair_t* together, pair_t* spawned) {
  int operation;
  for (operation = 0; operation < OPERATIONS; ++operation) {
    double times[2][ROUNDS];
    double ratios[ROUNDS];
    int round;
    for (round = 0; round < ROUNDS; ++round) {
      if (together != NULL) times[0][round] = run(together, operation);
      if (spawned != NULL) times[1][round] = run(spawned, operation);
      if (together != NULL && spawned != NULL) ratios[round] = times[1][round] / times[0][round];
    }
    if (together == NULL || spawned == NULL) continue;
    printf("%s: %.2f %.2f %.3f\n", operations[operation].name, median(times[0], ROUNDS),
           median(times[1], ROUNDS), median(ratios, ROUNDS));
  }
}

/* Starts a process that is a job of its own, with these arguments. */
static void start_alone(const char* program, const char* how, const char* where) {
  const pid_t child = fork();
  if (child < 0) mob_abort(2, "fork");
  if (child > 0) return;
  unsetenv("MOBIUS_JOB");
  unsetenv("MOBIUS_RANK");
  execl(program, program, "compare", how, where, (char*)NULL);
  _exit(127);
}

/* A team of the first process and another one; `where` is null in the first. */
static mob_team_t team_with_other(const char* program, const char* how, const char* where,
                                  mob_team_t alone) {
  const char* arguments[] = {"compare", how, NULL};
  mob_bridge_t bridge = mob_parent();
  mob_team_t team;
  if (strcmp(how, "spawned") == 0) {
    if (bridge == MOB_BRIDGE_NONE) check(mob_spawn(alone, program, arguments, 1, NULL, &bridge));
  } else if (strcmp(how, "connected") == 0) {
    if (where == NULL) {
      mob_port_t port;
      char text[MOB_PORT_BYTES];
      check(mob_port_open(NULL, &port, text));
      start_alone(program, how, text);
      check(mob_accept(alone, port, NULL, &bridge));
      check(mob_port_close(port));
    } else {
      check(mob_connect(MOB_TEAM_WORLD, where, NULL, &bridge));
    }
  } else {
    int ends[2] = {-1, -1};
    char text[16];
    if (where == NULL) {
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) mob_abort(2, "socketpair");
      snprintf(text, sizeof text, "%d", ends[1]);
      start_alone(program, how, text);
      close(ends[1]);
    } else {
      ends[0] = atoi(where);
    }
    check(mob_join(ends[0], &bridge));
  }
  check(mob_bridge_merge(bridge, 0, &team));
  return team;
}

static void compare_with(const char* program, const char* how, const char* where) {
  const int is_other = mob_parent() != MOB_BRIDGE_NONE || where != NULL;
  mob_team_t alone;
  pair_t together;
  pair_t later;
  check(mob_handler_register(1, on_message, NULL));
  if (is_other) {
    bind_to(1);
    make_pair(&later, team_with_other(program, how, where, MOB_TEAM_WORLD), 0);
    compare(NULL, &later);
    return;
  }
  if (mob_size() != 2) mob_abort(2, "dynamic_bench compare: start two processes");
  bind_to(mob_rank());
  check(mob_team_split(MOB_TEAM_WORLD, mob_rank(), 0, &alone));
  make_pair(&together, MOB_TEAM_WORLD, mob_rank() == 0);
  if (mob_rank() == 1) {
    compare(&together, NULL);
  } else {
    make_pair(&later, team_with_other(program, how, where, alone), 1);
    compare(&together, &later);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* argument = argc > 2 ? argv[2] : "";
  check(mob_init());
  if (strcmp(what, "spawn") == 0) {
    mob_bridge_t bridge = mob_parent();
    if (bridge != MOB_BRIDGE_NONE) {
      put_into_children(bridge, 1);
      check(mob_bridge_disconnect(bridge));
    } else {
      spawn_children(argv[0], argc > 2 ? atoi(argument) : 1);
    }
  } else if (strcmp(what, "accept") == 0 || strcmp(what, "connect") == 0) {
    connect_jobs(argument, strcmp(what, "accept") == 0);
  } else {
    compare_with(argv[0], argc > 2 ? argument : "spawned", argc > 3 ? argv[3] : NULL);
  }
  check(mob_finalize());
  return 0;
}
