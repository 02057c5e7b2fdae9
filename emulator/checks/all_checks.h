// Makers of the checks, for the table in all_checks.cc.
#pragma once

#include <memory>

namespace flydsl::emu::checks {

class Check;
struct Context;

std::unique_ptr<Check> make_limits(const Context &, void *);
std::unique_ptr<Check> make_align(const Context &, void *);
std::unique_ptr<Check> make_waitcnt(const Context &, void *);
std::unique_ptr<Check> make_defined(const Context &, void *);

std::shared_ptr<void> make_race_state(const Context &);
std::unique_ptr<Check> make_race(const Context &, void *);
std::shared_ptr<void> make_barrier_state(const Context &);
std::unique_ptr<Check> make_barrier(const Context &, void *);
std::shared_ptr<void> make_hazard_state(const Context &);
std::unique_ptr<Check> make_hazard(const Context &, void *);

}  // namespace flydsl::emu::checks
