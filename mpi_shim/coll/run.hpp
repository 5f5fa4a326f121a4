// SPDX-License-Identifier: BSD-2-Clause
// Runs a plan on the engine: blocking, to its end, or in parts, for a schedule. The big lock is held
// by every caller; while a program's operation is called it is given up.
#pragma once

#include "mpi_shim/coll/plan.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {

/// Where messages go. The steps of a plan name one by its number.
struct Route {
  Comm* comm;
  int tag;
};

/// The first error of a collective. A message that was too long does not end it, since others wait
/// for what this rank says next.
struct Outcome {
  int error = MPI_SUCCESS;

  [[nodiscard]] bool is_ended_by(int result) noexcept {
    if (error == MPI_SUCCESS) error = result;
    return result != MPI_SUCCESS && result != MPI_ERR_TRUNCATE;
  }
};

class Run {
 public:
  /// Plan and routes outlive it.
  Run(const Plan& plan, const Route* routes, Plane plane) noexcept
      : plan_(&plan), routes_(routes), next_(plan.begin()), plane_(plane) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// From the first step on: routes may have come since, or their array moved.
  void use(const Route* routes) noexcept {
    routes_ = routes;
    next_ = plan_->begin();
  }
  /// Memory for messages that are under way together. False: there is none.
  [[nodiscard]] bool prepare() noexcept;
  /// Nothing of it is done.
  void refuse(int error) noexcept { is_ended_ = outcome_.is_ended_by(error); }
  /// Does what can be done now. True: something moved.
  bool advance() noexcept;
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }
  [[nodiscard]] int error() const noexcept { return outcome_.error; }
  /// `out` hears of each receive when it is complete: source, tag and bytes.
  void tell_of_receives(Request& out) noexcept { told_ = &out; }

  /// Instead of prepare() and advance(): all of it, blocking. Returns the error.
  [[nodiscard]] int to_the_end() noexcept;

 private:
  static constexpr std::size_t kRequestsHere = 2;

  [[nodiscard]] const Route& route_of(const Step& step) const noexcept {
    return routes_[step.route];
  }
  /// Or the end: what comes before it has nothing more beside it.
  [[nodiscard]] bool is_fence(const Step* step) const noexcept {
    return step == plan_->end() || step->kind == Step::Kind::kFence;
  }
  /// Of a message from or to that rank by that communicator.
  [[nodiscard]] bool is_ended_by(int error, Comm& comm, int rank) noexcept {
    if (error == MPI_ERR_TRUNCATE) [[unlikely]]
      comm.odd_rank = rank;
    return outcome_.is_ended_by(error);
  }
  void set_up(Request& request, const Step& step) const noexcept;
  void begin(const Step& step, bool is_waited_for) noexcept;
  // What small collectives are made of: messages that nobody else hears of where that can be.
  [[nodiscard]] int send_alone(const Step& step) const noexcept;
  [[nodiscard]] int receive_alone(const Step& step) const noexcept;
  [[nodiscard]] int exchange_alone(const Step& incoming, const Step& outgoing) const noexcept;
  /// A copy or a combination.
  void compute(const Step& step) const noexcept;
  void do_steps() noexcept;
  void wait_for_messages() noexcept;
  void look_for_error() noexcept;
  [[nodiscard]] bool are_messages_complete() noexcept;

  const Plan* plan_;
  const Route* routes_;
  const Step* next_;
  Plane plane_;
  bool is_ended_ = false;  ///< by an error: what is under way is given up
  bool is_over_ = false;
  std::uint32_t looks_in_vain_ = 0;
  std::size_t begun_ = 0;
  std::size_t complete_ = 0;
  Outcome outcome_;
  Request* told_ = nullptr;
  Request* requests_ = nullptr;
  alignas(Request) unsigned char requests_here_[kRequestsHere * sizeof(Request)];
};

}  // namespace vmpi
