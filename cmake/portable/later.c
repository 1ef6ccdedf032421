// What glibc has only since versions that are newer than the oldest one a program has to run on, for programs that are linked
// with stubs (stubs.py). Nothing of it is visible outside a program or library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// 2.32. The C++ library counts references without atomic instructions while this is true. False is right at all times.
char __libc_single_threaded;

// 2.33. Before, headers called functions with the version of the structure.
#ifdef __x86_64__
enum { kStatVersion = 1 };
#else
enum { kStatVersion = 0 };
#endif
int __xstat(int version, const char* path, struct stat* into);
int __lxstat(int version, const char* path, struct stat* into);
int __fxstat(int version, int file, struct stat* into);
int __fxstatat(int version, int folder, const char* path, struct stat* into, int flags);
int __xmknod(int version, const char* path, mode_t mode, dev_t* device);
int __xmknodat(int version, int folder, const char* path, mode_t mode, dev_t* device);
int stat(const char* path, struct stat* into) { return __xstat(kStatVersion, path, into); }
int lstat(const char* path, struct stat* into) { return __lxstat(kStatVersion, path, into); }
int fstat(int file, struct stat* into) { return __fxstat(kStatVersion, file, into); }
int fstatat(int folder, const char* path, struct stat* into, int flags) {
  return __fxstatat(kStatVersion, folder, path, into, flags);
}
int mknod(const char* path, mode_t mode, dev_t device) { return __xmknod(0, path, mode, &device); }
int mknodat(int folder, const char* path, mode_t mode, dev_t device) { return __xmknodat(0, folder, path, mode, &device); }
// 64-bit systems have one structure under two names.
int stat64(const char* path, struct stat64* into) { return stat(path, (struct stat*)into); }
int lstat64(const char* path, struct stat64* into) { return lstat(path, (struct stat*)into); }
int fstat64(int file, struct stat64* into) { return fstat(file, (struct stat*)into); }
int fstatat64(int folder, const char* path, struct stat64* into, int flags) {
  return fstatat(folder, path, (struct stat*)into, flags);
}

// 2.36. std::random_device of a static libstdc++ calls it.
uint32_t arc4random(void) {
  uint32_t number;
  for (;;) {  // so few bytes come at once or not at all
    if (getrandom(&number, sizeof number, 0) == sizeof number) {
      return number;
    }
    if (errno != EINTR) {
      abort();
    }
  }
}

// 2.30
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

// 2.30: waiting until a time of any clock. The system's functions are called where it has them. Older ones know the time of day
// only: the rest of the time is counted from that, and no longer than a second at once, as someone may set it. Those who wait for
// a condition look again when they wake up early; the others wait here.
static const long kSecond = 1000000000L;

static long nanoseconds_left(clockid_t clock, const struct timespec* until) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) {
    return 0;
  }
  const long long seconds = (long long)until->tv_sec - now.tv_sec;
  if (seconds > 2) {
    return 2 * kSecond;
  }
  return seconds < -2 ? -1 : (long)seconds * kSecond + (until->tv_nsec - now.tv_nsec);
}

static int is_clock(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC; }

// The time of day in `left` nanoseconds, at most in a second.
static struct timespec time_of_day(long left) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_nsec += left > kSecond ? kSecond - 1 : left > 0 ? left : 0;
  if (at.tv_nsec >= kSecond) {
    at.tv_nsec -= kSecond;
    ++at.tv_sec;
  }
  return at;
}

// The system's function of this name, which is looked up once.
static void* function_of_system(const char* name, void** kept) {
  static char none;
  void* found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
  if (found == NULL) {
    found = dlsym(RTLD_DEFAULT, name);
    __atomic_store_n(kept, found != NULL ? found : &none, __ATOMIC_RELEASE);
  }
  return found == &none ? NULL : found;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  static void* kept;
  int (*const system)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*) =
      function_of_system("pthread_cond_clockwait", &kept);
  if (system != NULL) {
    return system(condition, mutex, clock, until);
  }
  if (!is_clock(clock)) {
    return EINVAL;
  }
  if (clock == CLOCK_REALTIME) {
    return pthread_cond_timedwait(condition, mutex, until);
  }
  const struct timespec at = time_of_day(nanoseconds_left(clock, until));
  const int result = pthread_cond_timedwait(condition, mutex, &at);
  return result == ETIMEDOUT && nanoseconds_left(clock, until) > 0 ? 0 : result;
}

// `try_until` with a time of day, in turns until the time of `clock` has come.
#define WAIT_BY_TURNS(timed, name, type)                                                              \
  int name(type* what, clockid_t clock, const struct timespec* until) {                               \
    static void* kept;                                                                                \
    int (*const system)(type*, clockid_t, const struct timespec*) = function_of_system(#name, &kept); \
    if (system != NULL) {                                                                             \
      return system(what, clock, until);                                                              \
    }                                                                                                 \
    if (!is_clock(clock)) {                                                                           \
      return EINVAL;                                                                                  \
    }                                                                                                 \
    for (;;) {                                                                                        \
      const struct timespec at = time_of_day(nanoseconds_left(clock, until));                         \
      const int result = timed(what, &at);                                                            \
      if (result != ETIMEDOUT || nanoseconds_left(clock, until) <= 0) {                               \
        return result;                                                                                \
      }                                                                                               \
    }                                                                                                 \
  }
WAIT_BY_TURNS(pthread_mutex_timedlock, pthread_mutex_clocklock, pthread_mutex_t)
WAIT_BY_TURNS(pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock, pthread_rwlock_t)
WAIT_BY_TURNS(pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock, pthread_rwlock_t)
