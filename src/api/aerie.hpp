// aerie.h for C++17 and later: handles that free themselves, and exceptions for failures. The rules
// of aerie.h for threads and lifetimes hold here, too.
#ifndef AERIE_HPP
#define AERIE_HPP

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aerie.h"

namespace aerie {
inline namespace header_0 {  // keeps these names apart from the library's own

// Thrown for any status except AERIE_OK.
class Failure : public std::runtime_error {
  public:
    Failure(aerie_status status, const char* message, aerie_cause cause = AERIE_CAUSE_OTHER)
        : std::runtime_error(message), status_(status), cause_(cause) {}
    aerie_status status() const { return status_; }
    aerie_cause cause() const { return cause_; }  // to decide by

  private:
    aerie_status status_;
    aerie_cause cause_;
};

struct Free {
    void operator()(aerie_context* handle) const { aerie_context_free(handle); }
    void operator()(aerie_model* handle) const { aerie_model_free(handle); }
    void operator()(aerie_session* handle) const { aerie_session_free(handle); }
    void operator()(void* memory) const { aerie_free(memory); }
};

class Context {
  public:
    Context() {
        aerie_context* made = nullptr;
        const aerie_status status = aerie_context_create(&made);
        if (status != AERIE_OK) throw Failure(status, aerie_status_name(status));
        handle_.reset(made);
    }
    aerie_context* handle() const { return handle_.get(); }
    void check(aerie_status status) const {
        if (status != AERIE_OK)
            throw Failure(status, aerie_context_message(handle()), aerie_context_cause(handle()));
    }

    std::vector<aerie_device> devices() const {
        size_t count = 0;
        check(aerie_context_devices(handle(), &count));
        std::vector<aerie_device> all(count, aerie_device_init());
        for (size_t i = 0; i < count; ++i) check(aerie_context_device(handle(), i, &all[i]));
        return all;
    }
    // The models at hand; `folder` is searched before others if it is given.
    std::vector<aerie_listed_model> models(const char* folder = nullptr) const {
        size_t count = 0;
        check(aerie_context_models(handle(), folder, &count));
        std::vector<aerie_listed_model> all(count, aerie_listed_model_init());
        for (size_t i = 0; i < count; ++i) check(aerie_context_model(handle(), i, &all[i]));
        return all;
    }
    aerie_forecast forecast(const aerie_model_options& options) const {
        aerie_forecast found = aerie_forecast_init();
        check(aerie_model_forecast(handle(), &options, &found));
        return found;
    }

  private:
    std::unique_ptr<aerie_context, Free> handle_;
};

class Model {
  public:
    Model(const Context& context, const aerie_model_options& options) {
        aerie_model* made = nullptr;
        context.check(aerie_model_open(context.handle(), &options, &made));
        handle_.reset(made);
    }
    aerie_model* handle() const { return handle_.get(); }
    void check(aerie_status status) const {
        if (status != AERIE_OK)
            throw Failure(status, aerie_model_message(handle()), aerie_model_cause(handle()));
    }

    aerie_model_info info() const {
        aerie_model_info found = aerie_model_info_init();
        check(aerie_model_get_info(handle(), &found));
        return found;
    }
    // The model's own sampling.
    aerie_sampling sampling() const {
        aerie_sampling found = aerie_sampling_init();
        check(aerie_model_get_sampling(handle(), &found));
        return found;
    }
    // flags: AERIE_TEXT_...
    std::vector<int32_t> tokenize(const std::string& text, uint32_t flags = 0) const {
        int32_t* ids = nullptr;
        size_t count = 0;
        check(aerie_model_tokenize(handle(), text.c_str(), text.size(), flags, &ids, &count));
        const std::unique_ptr<int32_t, Free> owner(ids);
        return std::vector<int32_t>(ids, ids + count);
    }
    std::string detokenize(const std::vector<int32_t>& ids) const {
        char* text = nullptr;
        size_t bytes = 0;
        check(aerie_model_detokenize(handle(), ids.data(), ids.size(), &text, &bytes));
        const std::unique_ptr<char, Free> owner(text);
        return std::string(text, bytes);
    }

  private:
    std::unique_ptr<aerie_model, Free> handle_;
};

class Session {
  public:
    explicit Session(const Model& model) {
        aerie_session* made = nullptr;
        model.check(aerie_session_create(model.handle(), &made));
        handle_.reset(made);
    }
    static Session load(const Model& model, const std::string& path) {
        aerie_session* made = nullptr;
        model.check(aerie_session_load(model.handle(), path.c_str(), &made));
        return Session(made);
    }
    aerie_session* handle() const { return handle_.get(); }
    void check(aerie_status status) const {
        if (status != AERIE_OK)
            throw Failure(status, aerie_session_message(handle()), aerie_session_cause(handle()));
    }

    void begin(const aerie_request& request) { check(aerie_session_begin(handle(), &request)); }
    aerie_step step() {
        aerie_step made = aerie_step_init();
        check(aerie_session_step(handle(), &made));
        return made;
    }
    // Calls show(step) after each step; the answer is cancelled if show returns false or throws.
    template <class Show>
    void run(Show&& show) {
        using Call = std::pair<Show&, std::exception_ptr>;
        Call call(show, nullptr);
        const auto callback = [](void* user, aerie_session*, const aerie_step* step) -> int {
            Call& own = *static_cast<Call*>(user);
            try {
                return own.second || !own.first(*step);
            } catch (...) {
                own.second = std::current_exception();
                return 1;
            }
        };
        const aerie_status status = aerie_session_run(handle(), callback, &call);
        if (call.second) std::rethrow_exception(call.second);
        check(status);
    }
    void run() { check(aerie_session_run(handle(), nullptr, nullptr)); }
    void cancel() { aerie_session_cancel(handle()); }  // may be called from any thread

    aerie_answer answer() const { return filled(aerie_answer_init(), aerie_session_answer); }
    aerie_cycle cycle() const { return filled(aerie_cycle_init(), aerie_session_cycle); }
    aerie_statistics statistics() const {
        return filled(aerie_statistics_init(), aerie_session_statistics);
    }
    aerie_token token(size_t index) const {
        aerie_token found = aerie_token_init();
        check(aerie_session_token(handle(), index, &found));
        return found;
    }
    std::vector<int32_t> ids() const {
        const int32_t* ids = nullptr;
        size_t count = 0;
        check(aerie_session_ids(handle(), &ids, &count, nullptr));
        return std::vector<int32_t>(ids, ids + count);
    }
    void save(const std::string& path) const { check(aerie_session_save(handle(), path.c_str())); }
    void rewind(size_t length) { check(aerie_session_rewind(handle(), length)); }
    Session fork(size_t length) const {
        aerie_session* made = nullptr;
        check(aerie_session_fork(handle(), length, &made));
        return Session(made);
    }

  private:
    explicit Session(aerie_session* made) : handle_(made) {}
    template <class Struct>
    Struct filled(Struct empty, aerie_status (*fill)(aerie_session*, Struct*)) const {
        check(fill(handle(), &empty));
        return empty;
    }

    std::unique_ptr<aerie_session, Free> handle_;
};

}  // namespace header_0
}  // namespace aerie

#endif
