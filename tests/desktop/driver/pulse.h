// Measures whether a window responds.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <atomic>
#include <thread>

// Measures the longest time for which the event loop did not run a timer and, for comparison, the
// longest wait of a thread without a window: a busy machine delays that one too.
class Pulse {
  public:
    Pulse() {
        since_.start();
        QObject::connect(&timer_, &QTimer::timeout, [this] {
            longest_ = std::max(longest_, since_.restart());
            ++ticks_;
        });
        timer_.start(5);
    }
    ~Pulse() {
        is_over_ = true;
        bare_.join();
    }
    qint64 bare_longest() const { return bare_longest_; }
    qint64 longest() const { return std::max(longest_, since_.elapsed()); }
    int ticks() const { return ticks_; }

  private:
    QTimer timer_;
    QElapsedTimer since_;
    qint64 longest_ = 0;
    int ticks_ = 0;
    std::atomic<bool> is_over_ = false;
    std::atomic<qint64> bare_longest_ = 0;
    std::thread bare_{[this] {
        QElapsedTimer since;
        for (since.start(); !is_over_;
             bare_longest_ = std::max(bare_longest_.load(), since.restart()))
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }};
};
