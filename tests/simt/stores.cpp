// Late stores by page protection: see stores.h.
#include "simt/stores.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace simt {

namespace {

constexpr size_t kPage = 4096;
using Page = std::array<std::byte, kPage>;

// Neighbouring bytes that were stored.
struct Run {
    std::byte* at;
    std::vector<std::byte> values;
};

// A set of bytes, by page.
using Bytes = std::map<std::byte*, std::bitset<kPage>>;

struct Count {
    size_t bytes;
    std::array<std::byte, 8> before;
};

struct Watch {
    bool active = false;
    bool beside = false, saw_producers = false, any_waited = false;
    // Pages to which the running block stored, as others see them.
    std::map<std::byte*, Page> stored;
    std::vector<std::vector<Run>> late;  // stores of each block that has ended
    Bytes written;                       // bytes stored by kernels that may run beside the next one
    Bytes own;                           // bytes stored by this kernel so far
    // Pages of `written` that the block has looked at, with their true bytes.
    std::map<std::byte*, Page> hidden;
    std::map<void*, Count> counts;
    struct sigaction before = {};
};
Watch watch;

void protect(std::byte* begin, size_t bytes, int protection) {
    if (mprotect(begin, bytes, protection) != 0) std::abort();
}

std::byte* page_of(const void* at) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(at) / kPage * kPage);
}

void open_page(std::byte* page) {
    std::memcpy(watch.stored[page].data(), page, kPage);
    protect(page, kPage, PROT_READ | PROT_WRITE);
}

// Protects neighbouring pages by one call.
template <class Pages>
void protect_pages(const Pages& pages, int protection) {
    for (auto first = pages.begin(); first != pages.end();) {
        std::byte* end = first->first;
        auto next = first;
        for (; next != pages.end() && next->first == end; ++next) end += kPage;
        protect(first->first, size_t(end - first->first), protection);
        first = next;
    }
}

// Closes the pages to which the block has stored.
void close_pages() {
    protect_pages(watch.stored, PROT_READ);
    watch.stored.clear();
}

// Fills the bytes of a page that the block must not see yet with ones, at its first look.
void hide(std::byte* page, const std::bitset<kPage>& bytes) {
    protect(page, kPage, PROT_READ | PROT_WRITE);
    std::memcpy(watch.hidden[page].data(), page, kPage);
    for (size_t i = 0; i < kPage; ++i)
        if (bytes[i]) page[i] = std::byte(0xff);
    protect(page, kPage, PROT_READ);
}

// Handles the first look at a page that is hidden, and the first store to a page. Any other fault
// is handled as without this handler.
void on_fault(int number, siginfo_t* info, void*) {
    std::byte* page = page_of(info->si_addr);
    if (watch.active && is_open_memory(info->si_addr)) {
        const auto written = watch.written.find(page);
        if (!watch.saw_producers && written != watch.written.end() && !watch.hidden.contains(page))
            return hide(page, written->second);
        if (!watch.stored.contains(page)) return open_page(page);
    }
    sigaction(number, &watch.before, nullptr);
}

void protect_all(int protection) {
    for_each_open_buffer(
        [=](std::byte* begin, size_t bytes) { protect(begin, bytes, protection); });
}

// Where a page differs from what others see of it.
std::vector<Run> runs_of(const std::byte* page, const Page& seen) {
    std::vector<Run> runs;
    for (size_t i = 0; i < kPage; ++i) {
        if (page[i] == seen[i]) continue;
        std::byte* at = const_cast<std::byte*>(page + i);
        if (runs.empty() || runs.back().at + runs.back().values.size() != at)
            runs.push_back({at, {}});
        runs.back().values.push_back(page[i]);
    }
    return runs;
}

void put(const Run& run) {
    std::memcpy(run.at, run.values.data(), run.values.size());
}

bool is_there(const Run& run) {
    return std::memcmp(run.at, run.values.data(), run.values.size()) == 0;
}

// Hide and show what producers stored. The block stores nothing in between.
void hide_written() {
    protect_pages(watch.written, PROT_NONE);
    watch.saw_producers = false;
}
void show_written() {
    protect_pages(watch.hidden, PROT_READ | PROT_WRITE);
    for (const auto& [page, bytes] : watch.hidden) std::memcpy(page, bytes.data(), kPage);
    watch.hidden.clear();
    protect_pages(watch.written, PROT_READ);
    watch.saw_producers = true;
}

// A run lies within a page.
void add_own(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        std::byte* page = page_of(run.at);
        std::bitset<kPage>& bytes = watch.own[page];
        for (size_t i = 0; i < run.values.size(); ++i) bytes.set(size_t(run.at - page) + i);
    }
}

void stop() {
    if (!std::exchange(watch.active, false)) return;
    sigaction(SIGSEGV, &watch.before, nullptr);
    protect_all(PROT_READ | PROT_WRITE);
    watch.stored.clear();
    watch.late.clear();
    watch.hidden.clear();
    watch.counts.clear();
}

// Stores are never late with AddressSanitizer, which has marks of its own on the pages.
Order order_of_environment() {
#ifdef __SANITIZE_ADDRESS__
    return {};
#endif
    const char* seed = std::getenv("AERIE_SIMT_SEED");
    return seed ? Order{true, unsigned(std::atoi(seed))} : Order{};
}

// Remembers what the next kernel must not see if it starts beside this one.
void remember_written() {
    if (!watch.beside) watch.written.clear();
    for (const auto& [page, bytes] : watch.own) watch.written[page] |= bytes;
    watch.own.clear();
}

}  // namespace

Order& order() {
    static Order current = order_of_environment();
    return current;
}

namespace stores {

void begin_kernel(Start start) {
    if (!order().late_stores) return;
    watch.active = true;
    watch.beside = start == Start::beside;
    watch.any_waited = false;
    if (!watch.beside) watch.written.clear();
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &watch.before);
    protect_all(PROT_READ);
}

void begin_block() {
    if (!watch.active) return;
    watch.saw_producers = true;
    if (watch.beside) hide_written();
}

bool sees_producers() {
    return !watch.active || watch.saw_producers;
}

void let_see_producers() {
    if (!watch.stored.empty())
        fault("stores to device memory before it has waited for the kernel before it");
    show_written();
    watch.any_waited = true;
}

void publish() {
    if (!watch.active) return;
    for (auto& [page, seen] : watch.stored) {
        add_own(runs_of(page, seen));
        std::memcpy(seen.data(), page, kPage);
    }
}

void change(void* at, size_t bytes, const std::function<void()>& work) {
    if (!watch.active || !is_open_memory(at)) return work();
    Count count{bytes, {}};
    std::memcpy(count.before.data(), at, bytes);
    watch.counts.emplace(at, count);
    work();
    std::byte* page = page_of(at);
    const auto stored = watch.stored.find(page);
    if (stored == watch.stored.end()) return;  // it changed nothing
    std::memcpy(stored->second.data() + (static_cast<std::byte*>(at) - page), at, bytes);
}

void end_block() {
    if (!watch.active) return;
    std::vector<Run>& late = watch.late.emplace_back();
    for (auto& [page, seen] : watch.stored) {
        for (Run& run : runs_of(page, seen)) late.push_back(std::move(run));
        std::memcpy(page, seen.data(), kPage);
    }
    close_pages();
    if (!watch.saw_producers) {
        if (!late.empty())
            fault("stores to device memory and never waits for the kernel before it");
        show_written();
    }
}

void end_kernel() {
    if (!watch.active) return;
    std::vector<std::vector<Run>> late = std::move(watch.late);
    const std::map<void*, Count> counts = std::move(watch.counts);
    const bool waited = watch.any_waited || !watch.beside;
    stop();
    for (const std::vector<Run>& runs : late) {
        std::for_each(runs.begin(), runs.end(), put);
        add_own(runs);
    }
    const bool agree = std::all_of(late.begin(), late.end(), [](const std::vector<Run>& runs) {
        return std::all_of(runs.begin(), runs.end(), is_there);
    });
    remember_written();
    if (!agree) fault("two of its blocks store different values in one place");
    for (const auto& [at, count] : counts)
        if (std::memcmp(at, count.before.data(), count.bytes) != 0)
            fault("ends with a count that it did not set back: a replay would go on from there");
    if (!waited) fault("starts beside the kernel before it and never waits for it");
}

void give_up() {
    stop();
    settle();
}

void settle() {
    watch.written.clear();
    watch.own.clear();
}

}  // namespace stores
}  // namespace simt
