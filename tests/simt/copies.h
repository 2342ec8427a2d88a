// Asynchronous copies of the threads of a block: done only when a thread waits for them.
#pragma once

namespace simt {

struct Copy {
    void* to;  // an array of shared memory
    int index;
    const void* from;
    void (*finish)(const Copy& copy);
};

void add_copy(const Copy& copy);   // of the running thread
void commit_copies();              // those since the last call are a group
void wait_for_copies(int groups);  // until at most so many groups are left

}  // namespace simt
