// The objects behind the handles.
#pragma once

#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "api/border.h"
#include "talk/talk.h"

namespace aerie::api {

// The log callback. It is shared, since a model may live longer than its context.
class Log {
  public:
    void set(aerie_log_callback callback, void* user) {
        const std::lock_guard lock(mutex_);
        callback_ = callback;
        user_ = user;
    }
    void say(aerie_log_level level, const std::string& line) {
        const std::lock_guard lock(mutex_);
        if (callback_) callback_(user_, level, line.c_str());
    }

  private:
    std::mutex mutex_;
    aerie_log_callback callback_ = nullptr;
    void* user_ = nullptr;
};

// A device in the form that the header shows.
struct ListedDevice {
    Capabilities device;
    std::string details;
    bool is_best = false;
};

// A model at hand in the form that the header shows. The strings belong to ListedModels.
struct ListedModel {
    const char *name, *path, *program, *heads;
    uint64_t weight_bytes;
};

// The newest search for models. Texts of earlier searches stay, since programs may still read them.
struct ListedModels {
    std::set<std::string> texts;
    std::vector<ListedModel> newest;
};

// A model, which lives as long as a handle or a session refers to it.
struct OpenModel {
    OpenModel(const LoadOptions& options, std::shared_ptr<Log> listener)
        : model(options), log(std::move(listener)) {}
    ~OpenModel() {
        try {
            model.review_costs();
        } catch (...) {  // the costs matter only for the next start
        }
    }
    OpenModel(const OpenModel&) = delete;
    OpenModel& operator=(const OpenModel&) = delete;

    SharedModel model;
    std::shared_ptr<Log> log;
};

inline std::shared_ptr<SharedModel> shared(const std::shared_ptr<OpenModel>& open) {
    return {open, &open->model};
}

// The messages of a handle on which several threads may fail at the same time.
class ThreadsMessages {
  public:
    explicit ThreadsMessages(HandleKind kind) : kind_(kind), id_(new_owner()) {}
    Message& of_this_thread() const noexcept {
        ThreadMessage& of_thread = thread_message(kind_);
        of_thread.owner = id_;
        return of_thread.message;
    }
    const char* text() const noexcept {
        const ThreadMessage& of_thread = thread_message(kind_);
        return of_thread.owner == id_ ? of_thread.message.text() : "";
    }
    aerie_cause cause() const noexcept {
        const ThreadMessage& of_thread = thread_message(kind_);
        return of_thread.owner == id_ ? of_thread.message.cause() : AERIE_CAUSE_NONE;
    }
    // Keeps this thread's message as the newest one of all threads.
    void note_failure() const noexcept {
        const std::lock_guard lock(mutex_);
        newest_ = thread_message(kind_).message;
    }
    Message newest() const noexcept {
        const std::lock_guard lock(mutex_);
        return newest_;
    }

  private:
    HandleKind kind_;
    uint64_t id_;
    mutable std::mutex mutex_;
    mutable Message newest_;
};

}  // namespace aerie::api

struct aerie_context {
    aerie::api::Message& message() const noexcept { return messages.of_this_thread(); }
    void note_failure() const noexcept { messages.note_failure(); }

    aerie::api::ThreadsMessages messages{aerie::api::HandleKind::context};
    std::shared_ptr<aerie::api::Log> log = std::make_shared<aerie::api::Log>();
    std::mutex listing;
    std::optional<std::vector<aerie::api::ListedDevice>> devices;  // set by the first query
    aerie::api::ListedModels models;
};

struct aerie_model {
    explicit aerie_model(std::shared_ptr<aerie::api::OpenModel> model) : open(std::move(model)) {}
    aerie::api::Message& message() const noexcept { return messages.of_this_thread(); }
    void note_failure() const noexcept { messages.note_failure(); }
    const aerie::SharedModel& model() const { return open->model; }

    aerie::api::ThreadsMessages messages{aerie::api::HandleKind::model};
    std::shared_ptr<aerie::api::OpenModel> open;
    // Members of aerie_model_info.
    std::string path = {}, head = {}, weights = {};
    bool has_system_role = false;
    uint64_t weight_bytes = 0;
};

struct aerie_session {
    aerie_session(std::shared_ptr<aerie::api::OpenModel> model, std::unique_ptr<aerie::Talk> own)
        : open(std::move(model)), talk(std::move(own)) {}
    aerie::api::Message& message() noexcept { return last_message; }
    void note_failure() const noexcept {}

    aerie::api::Message last_message;
    std::shared_ptr<aerie::api::OpenModel> open;
    std::unique_ptr<aerie::Talk> talk;
    // State of the newest answer.
    aerie_finish finish = AERIE_FINISH_NONE;
    size_t prompt_tokens = 0;
    uint64_t seed = 0;
    bool asked_logprobs = false;
    size_t alternatives_each = 0;
    std::vector<aerie_token_logprob> alternatives;
};
