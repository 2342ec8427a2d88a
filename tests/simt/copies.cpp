// Asynchronous copies stay here until their thread waits for them.
#include "simt/copies.h"

#include <deque>
#include <vector>

#include "simt/model.h"

namespace simt {

namespace {

struct Pending {
    uint32_t block = 0;  // copies of any other block are void
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
};

Pending& mine() {
    static std::vector<Pending> of_threads(1024);
    Pending& pending = of_threads[size_t(current()->number)];
    if (pending.block != block_serial()) pending = {block_serial(), {}, {}};
    return pending;
}

}  // namespace

void add_copy(const Copy& copy) {
    mine().open.push_back(copy);
}

void commit_copies() {
    Pending& pending = mine();
    pending.groups.push_back(std::move(pending.open));
    pending.open.clear();
}

void wait_for_copies(int groups) {
    for (Pending& pending = mine(); int(pending.groups.size()) > groups; pending.groups.pop_front())
        for (const Copy& copy : pending.groups.front()) copy.finish(copy);
}

}  // namespace simt
