// The order in which a work-group meets the others.
#pragma once

#include "attention_backward/own_rows.hip.h"

namespace flydsl::kernels {

// The tiles of the others that a work-group meets: those of the first head, then those of the next.
template <Pass pass, i32 own_of_work_group = kOwnOfWorkGroup, i32 rows = kRowsOfTile>
struct Steps {
  Work<pass> &work;
  i32 tile;
  u32 head = 0;

  FLYDSL_DEVICE explicit Steps(Work<pass> &work) : work(work) {
    tile = others().first / rows;
    work.take_head(0);
  }
  FLYDSL_DEVICE bool empty() const { return others().last < others().first; }
  // To the next one; false if there is none.
  FLYDSL_DEVICE bool advance() {
    const Range range = others();
    if (++tile * rows <= range.last) return true;
    if (pass == Pass::queries || head + 1 == work.heads()) return false;
    tile = range.first / rows;
    work.take_head(++head);
    return true;
  }

 private:
  FLYDSL_DEVICE Range others() const {
    return work.others_of(work.first_own, work.first_own + own_of_work_group - 1);
  }
};

}  // namespace flydsl::kernels
