/* The worker of `peal bench` for MPI. `peal bench` builds it with mpicc, and the mpirun of the same MPI
   starts it. Arguments: BACKEND SOCKET FLAGS spin|yield. It follows peal/bench/protocol.h and worker.cpp;
   values are as in values.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64 };

static int rank, ranks;

static void die(const char* what) {
  perror(what);
  exit(1);
}

/* ---- the coordinator */

static FILE* from_coordinator;
static int coordinator;

static void connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  coordinator = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(coordinator, (struct sockaddr*)&address, sizeof address) != 0) die(path);
  from_coordinator = fdopen(coordinator, "r");
}

static void say(const void* data, size_t size) {
  const char* at = data;
  while (size > 0) {
    ssize_t wrote = send(coordinator, at, size, MSG_NOSIGNAL);
    if (wrote < 0) _exit(1); /* the coordinator has ended */
    at += wrote;
    size -= (size_t)wrote;
  }
}

static void say_line(const char* line) { say(line, strlen(line)); }

/* The value of "key=..." in a command, or "". */
static const char* field(const char* command, const char* key) {
  static char value[64];
  char pattern[32];
  snprintf(pattern, sizeof pattern, " %s=", key);
  const char* at = strstr(command, pattern);
  value[0] = 0;
  if (at) sscanf(at + strlen(pattern), "%63s", value);
  return value;
}

static long long number(const char* command, const char* key) { return atoll(field(command, key)); }

/* ---- the barrier of flags, see flags.h */

static char* flags;
static uint64_t meetings;
static int yields;

static uint64_t* flag_of(int r) { return (uint64_t*)(flags + (size_t)r * LINE); }

static void meet(void) {
  __atomic_store_n(flag_of(rank), ++meetings, __ATOMIC_RELEASE);
  for (int r = 0; r < ranks; ++r) {
    int spins = yields ? 0 : 1000, left = 50;
    while (__atomic_load_n(flag_of(r), __ATOMIC_ACQUIRE) < meetings) {
      if (spins > 0) {
        --spins;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (left > 0) {
        --left;
        sched_yield();
      } else {
        usleep(20);
      }
    }
  }
}

static void map_flags(const char* path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) die(path);
  flags = mmap(NULL, (size_t)ranks * LINE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (flags == MAP_FAILED) die("mmap");
  close(fd);
}

/* ---- types and values */

struct type {
  const char* name;
  size_t size;
  MPI_Datatype mpi;
  int adds;      /* 0: MPI lacks the type, so it is moved as integers and not reduced */
  uint64_t ones; /* a word full of ones */
};

#define TYPES 8
static struct type types[TYPES];

static void make_types(void) {
  const struct type all[TYPES] = {
      {"f32", 4, MPI_FLOAT, 1, 0x3f8000003f800000},   {"f64", 8, MPI_DOUBLE, 1, 0x3ff0000000000000},
      {"i64", 8, MPI_INT64_T, 1, 1},                  {"i32", 4, MPI_INT32_T, 1, 0x0000000100000001},
      {"i16", 2, MPI_INT16_T, 1, 0x0001000100010001}, {"i8", 1, MPI_INT8_T, 1, 0x0101010101010101},
      {"u8", 1, MPI_UINT8_T, 1, 0x0101010101010101},  {"f16", 2, MPI_INT16_T, 0, 0x0001000100010001}};
  memcpy(types, all, sizeof all);
}

static const struct type* type_named(const char* name) {
  for (int i = 0; i < TYPES; ++i) {
    if (strcmp(types[i].name, name) == 0) return &types[i];
  }
  return strcmp(name, "bf16") == 0 ? &types[TYPES - 1] : NULL;
}

static void put(const struct type* type, char* data, int64_t i, int value) {
  switch (type->name[0] == 'f' && type->adds ? -(int)type->size : (int)type->size) {
    case -4: ((float*)data)[i] = (float)value; break;
    case -8: ((double*)data)[i] = value; break;
    case 8: ((int64_t*)data)[i] = value; break;
    case 4: ((int32_t*)data)[i] = value; break;
    case 2: ((int16_t*)data)[i] = (int16_t)value; break;
    default: ((int8_t*)data)[i] = (int8_t)value;
  }
}

static double get(const struct type* type, const char* data, int64_t i) {
  switch (type->name[0] == 'f' && type->adds ? -(int)type->size : (int)type->size) {
    case -4: return ((const float*)data)[i];
    case -8: return ((const double*)data)[i];
    case 8: return (double)((const int64_t*)data)[i];
    case 4: return ((const int32_t*)data)[i];
    case 2: return ((const int16_t*)data)[i];
    default: return type->name[0] == 'u' ? ((const uint8_t*)data)[i] : ((const int8_t*)data)[i];
  }
}

/* As `rewrite` of values.cpp: one loop of plain stores for all types, which the compiler cannot replace by
   memset. */
static void fill(const struct type* type, char* data, int64_t count) {
  if (count == 0) return; /* data may be NULL, which memcpy does not accept */
  uint64_t word = type->ones;
  __asm__ volatile("" : "+r"(word));
  const size_t size = (size_t)count * type->size, whole = size / sizeof word;
  for (size_t i = 0; i < whole; ++i) memcpy(data + i * sizeof word, &word, sizeof word);
  memcpy(data + whole * sizeof word, &word, size % sizeof word);
}

static int value_at(int r, int64_t index, int modulus) {
  uint32_t mixed = (uint32_t)((uint64_t)index * 2654435761u);
  return (int)(((int64_t)(mixed >> 16) + 7 * (int64_t)r) % modulus);
}

/* ---- the prepared case */

static struct {
  char op[32];
  const struct type* type;
  int64_t count, input_count, output_count;
  int in_place, modulus;
  char *memory[2], *input, *output;
} now;

static int is(const char* op) { return strcmp(now.op, op) == 0; }

static int has_blocks(void) {
  return is("reduce_scatter") || is("all_gather") || is("gather") || is("scatter") ||
         is("all_to_all");
}

static char* allocate(int64_t count) {
  void* memory = NULL;
  if (count > 0 && posix_memalign(&memory, 64, (size_t)count * now.type->size) != 0) die("malloc");
  return memory;
}

/* As input_count, output_count and placement of case.h. */
static void place_buffers(void) {
  const int64_t whole = has_blocks() ? now.count * ranks : now.count;
  const int root = rank == 0, end = rank == 0 || rank == ranks - 1;
  const int64_t block_bytes = now.count * (int64_t)now.type->size;
  now.input_count = now.output_count = whole;
  if (is("all_gather") || is("gather")) now.input_count = now.count;
  if (is("reduce_scatter") || is("scatter")) now.output_count = now.count;
  if ((is("broadcast") || is("scatter")) && !root) now.input_count = 0;
  if ((is("reduce") || is("gather")) && !root) now.output_count = 0;
  if (is("send_recv") && !end) now.input_count = now.output_count = 0;
  const int one_buffer = is("all_reduce") || is("broadcast") || is("reduce");
  const int own_block = now.in_place && (is("all_gather") || is("reduce_scatter") ||
                                         (root && (is("gather") || is("scatter"))));
  now.in_place = one_buffer || own_block;
  if (!now.in_place) {
    now.input = now.memory[0] = allocate(now.input_count);
    now.output = now.memory[1] = allocate(now.output_count);
    return;
  }
  now.memory[0] = allocate(now.input_count > now.output_count ? now.input_count : now.output_count);
  now.input = now.output = now.memory[0];
  if (is("all_gather")) now.input += block_bytes * rank;
  if (is("reduce_scatter")) now.output += block_bytes * rank;
}

static void ping_pong(int n, MPI_Datatype t) {
  const int last = ranks - 1;
  if (rank == 0) {
    MPI_Send(now.input, n, t, last, 0, MPI_COMM_WORLD);
    MPI_Recv(now.output, n, t, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == last) {
    MPI_Recv(now.output, n, t, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(now.input, n, t, 0, 0, MPI_COMM_WORLD);
  }
}

enum op { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, GATHER, SCATTER, ALL_TO_ALL,
          SEND_RECV, BARRIER, OPS };
static const char* op_names[OPS] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                    "reduce",     "gather",         "scatter",    "all_to_all",
                                    "send_recv",  "barrier"};

static enum op op_of(void) {
  enum op op = 0;
  while (op < OPS && !is(op_names[op])) ++op;
  return op;
}

static void run(enum op op) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype t = now.type->mpi;
  const int n = (int)now.count;
  const void* in = now.in_place ? MPI_IN_PLACE : now.input;
  switch (op) {
    case ALL_REDUCE: MPI_Allreduce(in, now.output, n, t, MPI_SUM, world); break;
    case REDUCE_SCATTER:
      /* In place, MPI writes the result to the beginning of the receive buffer. */
      MPI_Reduce_scatter_block(in, now.in_place ? now.input : now.output, n, t, MPI_SUM, world);
      break;
    case ALL_GATHER: MPI_Allgather(in, n, t, now.output, n, t, world); break;
    case BROADCAST: MPI_Bcast(now.output, n, t, 0, world); break;
    case REDUCE:
      MPI_Reduce(rank == 0 ? MPI_IN_PLACE : now.input, now.output, n, t, MPI_SUM, 0, world);
      break;
    case GATHER: MPI_Gather(in, n, t, now.output, n, t, 0, world); break;
    case SCATTER:
      MPI_Scatter(now.input, n, t, now.in_place ? MPI_IN_PLACE : now.output, n, t, 0, world);
      break;
    case ALL_TO_ALL: MPI_Alltoall(now.input, n, t, now.output, n, t, world); break;
    case SEND_RECV: ping_pong(n, t); break;
    case BARRIER: MPI_Barrier(world); break;
    case OPS: break;
  }
}

static int sum_at(int64_t index) {
  int sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value_at(r, index, now.modulus);
  return sum;
}

static int expected_at(enum op op, int64_t i) {
  const int m = now.modulus;
  switch (op) {
    case ALL_REDUCE: case REDUCE: return sum_at(i);
    case REDUCE_SCATTER: return sum_at(rank * now.count + i);
    case BROADCAST: return value_at(0, i, m);
    case SCATTER: return value_at(0, rank * now.count + i, m);
    case ALL_GATHER: case GATHER: return value_at((int)(i / now.count), i, m);
    case ALL_TO_ALL: return value_at((int)(i / now.count), rank * now.count + i % now.count, m);
    case SEND_RECV: return value_at(rank == 0 ? ranks - 1 : 0, i, m);
    default: return 0;
  }
}

static void prepare(const char* command) {
  free(now.memory[0]);
  free(now.memory[1]);
  memset(&now, 0, sizeof now);
  snprintf(now.op, sizeof now.op, "%s", field(command, "op"));
  now.type = type_named(field(command, "dtype"));
  now.count = number(command, "count");
  now.modulus = (int)number(command, "modulus");
  now.in_place = strcmp(field(command, "place"), "in") == 0;
  const enum op op = op_of();
  const int reduces = op == ALL_REDUCE || op == REDUCE || op == REDUCE_SCATTER;
  if (op == OPS || !now.type || (reduces && !now.type->adds)) {
    say_line("missing MPI cannot add this type\n");
    return;
  }
  if (now.count > INT32_MAX) {
    say_line("missing MPI counts elements with an int\n");
    return;
  }
  place_buffers();
  for (int64_t i = 0; i < now.output_count; ++i) put(now.type, now.output, i, 0);
  const int64_t begin = op == ALL_GATHER || op == GATHER ? rank * now.count : 0;
  for (int64_t i = 0; i < now.input_count; ++i) {
    put(now.type, now.input, i, value_at(rank, begin + i, now.modulus));
  }
  meet();
  run(op);
  const char* result = op == REDUCE_SCATTER && now.in_place ? now.input : now.output;
  for (int64_t i = 0; i < now.output_count; ++i) {
    const int expected = expected_at(op, i);
    const double got = get(now.type, result, i);
    if (got == expected) continue;
    char line[128];
    snprintf(line, sizeof line, "wrong index %lld: got %g, expected %d\n", (long long)i, got, expected);
    say_line(line);
    return;
  }
  say_line("ok 0\n");
}

static int64_t time_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void measure(const char* command) {
  const long long warmup = number(command, "warmup"), iterations = number(command, "iterations");
  const long long batch = number(command, "batch");
  const int rewrites = (int)number(command, "rewrite");
  const enum op op = op_of();
  int64_t(*times)[2] = malloc((size_t)iterations * sizeof *times + 1);
  for (long long i = -warmup; i < iterations; ++i) {
    if (rewrites && batch == 1) fill(now.type, now.input, now.input_count);
    meet();
    const int64_t begin = time_now();
    for (long long k = 0; k < batch; ++k) {
      if (rewrites && batch > 1) fill(now.type, now.input, now.input_count);
      run(op);
    }
    const int64_t end = time_now();
    if (i < 0) continue;
    times[i][0] = begin;
    times[i][1] = end;
  }
  char line[32];
  snprintf(line, sizeof line, "ok %lld\n", iterations);
  say_line(line);
  say(times, (size_t)iterations * sizeof *times);
  free(times);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  make_types();
  yields = strcmp(argv[4], "yield") == 0;
  map_flags(argv[3]);
  connect_to(argv[2]);
  char version[MPI_MAX_LIBRARY_VERSION_STRING], line[512];
  int length = 0;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0;
  for (char* c = version; *c; ++c) *c = *c == '\t' ? ' ' : *c;
  snprintf(line, sizeof line, "hello %s %d %.400s\n", argv[1], rank, version);
  say_line(line);
  while (fgets(line, sizeof line, from_coordinator)) {
    if (strncmp(line, "prepare ", 8) == 0) {
      prepare(line);
    } else {
      measure(line);
    }
  }
  MPI_Finalize();
  return 0;
}
