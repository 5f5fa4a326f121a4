// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/fabric/service.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr int kEventsPerWake = 32;
constexpr std::size_t kStackBytes = 256u << 10;
constexpr std::uint32_t kSweepsPerSecond = 20;
/// The longest sleep. A descriptor that is closed wakes nobody who sleeps at it.
constexpr int kLongestSleepMs = 1000;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr rlim_t kDescriptorRoom = 1024;
/// In a row, in which sockets had something to say: after so many the clock of waits goes on all
/// the same, since a stranger may flood us. So many come before the dates when the thread was away.
constexpr std::uint32_t kRoundsUnheard = 64;
constexpr std::uint32_t kRoundsBeforeDates = 8;
/// An absence that somebody may ask about, and how often one is spoken of.
constexpr std::uint64_t kLongAwayNs = 500'000'000;
constexpr std::uint64_t kSayAwayNs = 10'000'000'000;

std::uint64_t lesser(std::uint64_t a, std::uint64_t b) noexcept { return a < b ? a : b; }

/// Makes the kernel's table of our descriptors as large as 340 peers need. It grows by doubling,
/// and while a process has several threads each step waits until all processors have passed a point
/// of rest (synchronize_rcu): 10 ms, among many busy processes seconds, at the worst moment, when
/// processes meet. Without other threads it costs nothing, with them this once. The memory, 8 KiB
/// of each process, is little beside its segment. A failure is harmless: then it grows by steps.
void make_room_for_descriptors(int any) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == 0) return;
  const rlim_t room = limit.rlim_cur < kDescriptorRoom ? limit.rlim_cur : kDescriptorRoom;
  // The table has room for the highest number that ever was open, and never shrinks.
  const UniqueFd for_a_moment(::fcntl(any, F_DUPFD_CLOEXEC, static_cast<int>(room - 1)));
}

}  // namespace

int Service::start() noexcept {
  int error = peer_wakes_.open(around_.folder);
  if (error != 0) {
    log_error("a socket in the fabric folder %s: %s%s", around_.folder.path(), std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid() || !watch(wake_.get(), wake_source_) ||
      !watch(peer_wakes_.told().fd(), peer_wake_source_)) {
    error = errno;
    log_error("descriptors for the service thread: %s%s", std::strerror(error),
              error == EMFILE ? " (raise 'ulimit -n')" : "");
    return error;
  }
  make_room_for_descriptors(wake_.get());
  connections_.open(epoll_.get(), peer_wakes_.told());
  stopping_.store(false, std::memory_order_relaxed);

  // The thread inherits the mask: signals are for the application's threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  (void)::pthread_attr_setstacksize(&attributes, kStackBytes);
  error = ::pthread_create(&thread_, &attributes, run, this);
  // A program with much thread-local data needs more stack than that.
  if (error == EINVAL) error = ::pthread_create(&thread_, nullptr, run, this);
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    log_error("starting the service thread: %s (limits on processes: 'ulimit -u', pids.max)",
              std::strerror(error));
    return error;
  }
  (void)::pthread_setname_np(thread_, "verbatim-shm");
  running_.store(true, std::memory_order_release);
  return 0;
}

void Service::stop(bool forked) noexcept {
  if (running_.load(std::memory_order_acquire) && !forked) {
    stopping_.store(true, std::memory_order_release);
    wake();
    ::pthread_join(thread_, nullptr);
  }
  running_.store(false, std::memory_order_relaxed);
  const bool is_whole = !has_failed() && around_.segment.has_its_files();
  connections_.close(forked, !is_whole);
  if (!is_whole) {
    epoll_.doubt();
    wake_.doubt();
  }
  epoll_.reset();
  wake_.reset();
  peer_wakes_.close();
}

bool Service::watch(int fd, EventSource& source) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &source;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Service::wake() noexcept {
  const std::uint64_t one = 1;
  // What our threads did before is seen by the thread that wakes; pairs with on_wake().
  wakes_.fetch_add(1, std::memory_order_release);
  // The application may have closed it, and have a file under its number.
  if (has_failed() || !wake_.is_ours()) return;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Service::want_tick(bool on) noexcept {
  if (ticking_.load(std::memory_order_relaxed) == on) return;
  if (!ticking_.exchange(on, std::memory_order_acq_rel) && on && !on_thread()) wake();
}

bool Service::on_thread() const noexcept {
  return running_.load(std::memory_order_acquire) &&
         ::pthread_equal(::pthread_self(), thread_) != 0;
}

void* Service::run(void* self) noexcept {
  // It is in a program's locks for a moment only, however often that may be.
  BiasedLock::own_none();
  static_cast<Service*>(self)->loop();
  return nullptr;
}

void Service::loop() noexcept {
  std::uint32_t unheard = 0;
  std::uint32_t undated = 0;
  std::uint64_t handled = now_ns();
  wait_clock_.start(handled);
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t begun = handled;
    bool exact = false;
    std::uint64_t date = 0;
    // Who was away hears first what was said meanwhile, and looks at his dates then.
    if (!wait_clock_.is_behind(begun) || ++undated > kRoundsBeforeDates) {
      undated = 0;
      date = run_due(exact);
    }
    connections_.bury();
    const std::uint64_t dated = now_ns();
    // By a millisecond longer when whole ones are slept.
    if (!wait_clock_.is_behind(begun))
      wait_clock_.sleeps_until(date <= dated
                                   ? dated
                                   : lesser(date - dated, kLongestSleepMs * kMillisecond) + dated +
                                         kMillisecond);
    std::uint64_t slept = 0;
    const int timeout = sleep_until(date, exact, slept);
    wait_clock_.slept(slept);
    epoll_event events[kEventsPerWake];
    // Another epoll under its number would say what only its owner understands.
    if (!has_its_descriptors_lately()) return fail();
    const std::uint64_t asked = now_ns();
    const int count = ::epoll_wait(epoll_.get(), events, kEventsPerWake, timeout);
    if ((count < 0 && (errno == EBADF || errno == EINVAL)) || !has_its_descriptors_lately())
      return fail();
    // What another epoll says would be taken for our own addresses: no look is fresh enough.
    if (count > 0 && !around_.segment.has_its_files()) return fail();
    const std::uint64_t woken = now_ns();
    if (handle({events, count > 0 ? static_cast<std::size_t>(count) : 0}) ||
        ++unheard > kRoundsUnheard) {
      unheard = 0;
      wait_clock_.hear(asked);
    }
    const std::uint64_t in_wait =
        lesser(woken - asked, static_cast<std::uint64_t>(timeout) * 1'000'000);
    wait_clock_.slept(in_wait);
    handled = now_ns();
    if (handled - begun - slept - in_wait > kLongAwayNs) [[unlikely]]
      say_away(woken - dated - slept - in_wait, handled - woken, dated - begun);
  }
}

bool Service::handle(std::span<epoll_event> events) noexcept {
  bool is_all = events.size() < kEventsPerWake;
  for (const epoll_event& event : events) {
    EventSource& source = *static_cast<EventSource*>(event.data.ptr);
    switch (source.kind) {
      case EventSource::kWake:
        on_wake();
        continue;
      case EventSource::kPeerWake:
        // First what woke us, then what it announced: a ring after the drain wakes us again.
        peer_wakes_.drain();
        drain_doorbells();
        continue;
      case EventSource::kListener:
        connections_.on_listener(source);
        break;
      case EventSource::kConnection:
        connections_.on_connection(*static_cast<Connection*>(source.object));
        break;
      case EventSource::kDeath:
        connections_.on_death(*static_cast<Peer*>(source.object));
        break;
    }
    is_all = false;  // sockets are read by so many messages at a time
  }
  return is_all;
}

void Service::say_away(std::uint64_t asleep, std::uint64_t at_events,
                       std::uint64_t at_dates) noexcept {
  const std::uint64_t now = now_ns();
  if (said_away_at_ != 0 && now - said_away_at_ < kSayAwayNs) return;
  said_away_at_ = now;
  const auto ms = [](std::uint64_t ns) { return static_cast<unsigned long long>(ns / 1'000'000); };
  log_info(
      "the service thread heard nobody for %llu ms: %llu beyond its sleep, %llu at events, %llu at "
      "its dates. More than a few are time without a core, or stopped; others are not blamed for "
      "it",
      ms(asleep + at_events + at_dates), ms(asleep), ms(at_events), ms(at_dates));
}

void Service::on_wake() noexcept {
  std::uint64_t ignored = 0;
  (void)!::read(wake_.get(), &ignored, sizeof ignored);
  (void)wakes_.load(std::memory_order_acquire);
  drain_doorbells();
  connections_.ask_for_arenas();
}

void Service::drain_doorbells() noexcept {
  Doorbells& doorbells = around_.segment.doorbells();
  const ServiceHooks& hooks = around_.hooks;
  doorbells.service.drain([&](std::uint32_t bit) {
    if (!hooks.request(bit)) return;
    doorbells.service.ring(bit);
    wake();
  });
  if (hooks.asked()) wake();
  doorbells.cq_wake.drain([&hooks](std::uint32_t cq) { hooks.cq_wake(cq); });
}

std::uint64_t Service::run_due(bool& exact) noexcept {
  std::uint64_t now = now_ns();
  std::uint64_t next = connections_.run_due(now);
  const bool is_busy = next != kForEver || connections_.living() != 0;
  if (const std::uint64_t when = tend_names(now, is_busy); when < next) next = when;

  if (!ticking_.load(std::memory_order_acquire)) {
    next_tick_ = 0;
  } else {
    if (next_tick_ == 0) next_tick_ = now + kTickNs;
    if (now >= next_tick_) {
      around_.hooks.tick();
      now = now_ns();
      // On average once per ms although epoll rounds up; what was missed by far is not made up for.
      next_tick_ += kTickNs;
      if (next_tick_ + kTickNs < now) next_tick_ = now + kTickNs;
    }
    if (!ticking_.load(std::memory_order_acquire)) {
      next_tick_ = 0;
    } else if (next_tick_ < next) {
      next = next_tick_;
    }
  }

  if (connections_.living() == 0) {
    next_sweep_ = 0;
  } else {
    if (next_sweep_ == 0) next_sweep_ = now + kSweepNs;
    if (now >= next_sweep_) {
      drain_doorbells();  // a bit whose wake-up was lost
      around_.hooks.sweep();
      if (++sweeps_ % kSweepsPerSecond == 0) connections_.forget_refusals();
      now = now_ns();
      next_sweep_ = now + kSweepNs;
    }
    if (next_sweep_ < next) next = next_sweep_;
  }

  // Last: what came before may have changed it.
  const std::uint64_t due = around_.hooks.due(now);
  exact = due < next;
  return exact ? due : next;
}

int Service::sleep_until(std::uint64_t date, bool exact, std::uint64_t& slept) noexcept {
  if (date == kForEver) return kLongestSleepMs;
  const std::uint64_t now = now_ns();
  if (date <= now) return 0;
  const std::uint64_t left = date - now;
  if (exact) {
    // What epoll_wait(2) cannot: its set is a descriptor too. When this fails, a little late is
    // early enough.
    pollfd all{epoll_.get(), POLLIN, 0};
    const timespec time{static_cast<time_t>(left / 1'000'000'000),
                        static_cast<long>(left % 1'000'000'000)};
    if (::ppoll(&all, 1, &time, nullptr) >= 0) {
      slept = lesser(now_ns() - now, left);
      return 0;
    }
  }
  const std::uint64_t ms = (left + 999'999) / 1'000'000;
  return ms > kLongestSleepMs ? kLongestSleepMs : static_cast<int>(ms);
}

}  // namespace verbatim::shm
