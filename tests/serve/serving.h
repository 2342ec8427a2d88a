// A service with the bundled model, and functions to ask it.
#pragma once

#include <gtest/gtest.h>

#include "core/clock.h"
#include "io/json.h"
#include "paths.h"
#include "recorded_exchange.h"
#include "serve/service.h"

namespace aerie::test {

inline LoadOptions served_options(int talks, int context = 512) {
    LoadOptions options;
    options.device = "cpu";
    options.threads = 1;
    options.context = context;
    options.model = models_dir() / "aerie-tiny";
    options.draft.method = "none";
    options.sequences = talks;
    return options;
}

inline const Endpoint* endpoint_at(const std::string& path) {
    return Gate(endpoints()).find(path);
}

class Serving {
  public:
    explicit Serving(const LoadOptions& load, int parallel = 1)
        : model(std::make_shared<SharedModel>(load)), service(model, options(parallel)) {}

    std::shared_ptr<RecordedExchange> send(const std::string& path, const std::string& body,
                                           bool reads = true) {
        auto exchange = std::make_shared<RecordedExchange>(reads);
        service.handle({endpoint_at(path), path, body, steady_seconds()}, exchange);
        return exchange;
    }
    // Returns the whole reply, which must have this status.
    std::string ask(const std::string& path, const std::string& body, int status = 200) {
        const auto exchange = send(path, body);
        EXPECT_TRUE(exchange->wait()) << body.substr(0, 200);
        EXPECT_EQ(exchange->status(), status) << exchange->text().substr(0, 500);
        EXPECT_EQ(exchange->ends(), 1);
        return exchange->text();
    }
    Json chat(const std::string& body) {
        return Json::parse(ask("/v1/chat/completions", body), "reply");
    }
    Json complete(const std::string& body) {
        return Json::parse(ask("/v1/completions", body), "reply");
    }
    std::string code_of(const std::string& path, const std::string& body, int status = 400) {
        const Json error = Json::parse(ask(path, body, status), "reply");
        const std::string* code = error.find("error")->find("code")->string();
        return code ? *code : "";
    }
    double metric(const std::string& name) {
        const std::string page = ask("/metrics", "");
        const size_t at = page.find("\naerie_" + name + " ");
        return at == page.npos ? -1 : std::stod(page.substr(at + name.size() + 8));
    }
    bool wait_until(const std::function<bool()>& holds) {
        for (int i = 0; i < 60'000 && !holds(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return holds();
    }

    std::vector<std::string> logged() const {
        const std::lock_guard lock(mutex_);
        return logged_;
    }

  private:
    ServiceOptions options(int parallel) {
        ServiceOptions options;
        options.model_name = "tiny";
        options.parallel = parallel;
        options.log = [this](const std::string& line) {
            const std::lock_guard lock(mutex_);
            logged_.push_back(line);
        };
        return options;
    }

    mutable std::mutex mutex_;
    std::vector<std::string> logged_;

  public:
    const std::shared_ptr<SharedModel> model;
    Service service;
};

inline const Json& choice_of(const Json& reply, size_t i = 0) {
    return (*reply.find("choices")->array())[i];
}
inline std::string text_of(const Json& reply, size_t i = 0) {
    const Json& choice = choice_of(reply, i);
    const Json* message = choice.find("message");
    return *(message ? message->find("content") : choice.find("text"))->string();
}

}  // namespace aerie::test
