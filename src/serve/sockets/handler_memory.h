// Memory that is reserved for handlers which must be posted even when no other memory is left.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace aerie {

// Holds one handler at a time. A second one, or one that is too large, is allocated as usual.
class HandlerMemory {
  public:
    void* take(size_t size_bytes) {
        if (size_bytes > sizeof(bytes_) || is_taken_.exchange(true))
            return ::operator new(size_bytes);
        return bytes_;
    }
    void give_back(void* place) noexcept {
        if (place == bytes_)
            is_taken_ = false;
        else
            ::operator delete(place);
    }
    bool is_taken() const { return is_taken_; }

  private:
    alignas(std::max_align_t) std::byte bytes_[512];
    std::atomic<bool> is_taken_ = false;
};

template <typename T>
class HandlerAllocator {
  public:
    using value_type = T;
    explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
    template <typename Other>
    HandlerAllocator(const HandlerAllocator<Other>& other) : memory_(other.memory_) {}

    T* allocate(size_t count) { return static_cast<T*>(memory_->take(count * sizeof(T))); }
    void deallocate(T* place, size_t) noexcept { memory_->give_back(place); }
    template <typename Other>
    bool operator==(const HandlerAllocator<Other>& other) const {
        return memory_ == other.memory_;
    }

  private:
    template <typename Other>
    friend class HandlerAllocator;
    HandlerMemory* memory_;
};

// A handler that asio keeps in `memory`, which must live as long as the handler is kept.
template <typename Handler>
class Reserved {
  public:
    using allocator_type = HandlerAllocator<std::byte>;
    Reserved(HandlerMemory& memory, Handler handler)
        : allocator_(memory), handler_(std::move(handler)) {}
    allocator_type get_allocator() const noexcept { return allocator_; }
    template <typename... Args>
    void operator()(Args&&... args) {
        handler_(std::forward<Args>(args)...);
    }

  private:
    allocator_type allocator_;
    Handler handler_;
};

}  // namespace aerie
