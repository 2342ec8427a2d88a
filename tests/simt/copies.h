// Asynchronous copies of the threads of a block: done only when a thread waits for them.
#pragma once

namespace simt {

struct Copy {
    void* to;  // an array of shared memory
    int index;
    const void* from;
    void (*finish)(const Copy& copy);
};

void add_copy(const Copy& copy);   // by the running thread
void commit_copies();              // makes a group of the copies since the last call
void wait_for_copies(int groups);  // until at most so many are pending

}  // namespace simt
