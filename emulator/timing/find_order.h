// Which work-groups of a launch wait for which: found from those that were recorded (Ordering).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "emulator/timing/recorded_launch.h"
#include "emulator/timing/recording.h"

namespace flydsl::emu::timing {

// Whether the code has a loop that does nothing in memory but load a dword at device scope. What sampled launches before this one
// left out may look like values that nobody has to wait for.
bool has_poll_loop(const Program &program);

// All loads at device scope of one address for all lanes, that were executed.
std::set<uint32_t> synchronising_loads(const std::map<uint64_t, GroupTrace> &traces);

// Which turn each one waits for, found at the beginning of the launch: a few times what repeats itself there, or all.
bool find_order(Recording &recording, uint64_t groups, uint32_t waves,
                const std::set<uint32_t> &wait_ops, Ordering &ordering);

// Numbers addresses in the order in which they are met: where the host put them must not matter.
void number_addresses(const std::vector<std::vector<GroupTrace> *> &lists);

void forget_syncs(std::vector<GroupTrace> &groups);

// Loads of addresses that another work-group of these has stored to or updated.
std::set<uint32_t> loads_of_others(const std::map<uint64_t, GroupTrace> &traces);

// All turns of a launch: each waits for the last one before it that wrote where it waits.
std::vector<uint32_t> distances(const std::map<uint64_t, GroupTrace> &traces,
                                const std::set<uint32_t> &wait_ops);

// Whether the first numbers that the work-groups take all come from one address.
bool one_counter(const Program &program, const std::map<uint64_t, GroupTrace> &traces);

// Of the samples that wait, some from the first to the last: what they wait for is looked at.
std::vector<uint32_t> some_that_wait(const RecordedLaunch &launch);

// Where few turns wait for nobody, and a sample is one of them by chance (the first of a chain lies where axes have their ends
// and middles): the next turn that waits takes its place, if its work is much the same.
bool take_those_that_wait(Recording &recording, uint64_t budget, RecordedLaunch &launch);

}  // namespace flydsl::emu::timing
