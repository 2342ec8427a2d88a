// Prints an answer token by token, with drafted tokens dimmed: stream MODEL PROMPT
#include <aerie.hpp>
#include <csignal>
#include <cstdio>

namespace {

volatile std::sig_atomic_t interrupted = 0;

void print_token(const aerie_token& token) {
    const bool is_drafted = token.origin == AERIE_FROM_DRAFT;
    if (is_drafted) std::fputs("\033[2m", stdout);
    std::fwrite(token.bytes, 1, token.byte_count, stdout);
    if (is_drafted) std::fputs("\033[0m", stdout);
}

void stream(const char* model_name, const char* prompt) {
    const aerie::Context context;
    aerie_model_options options = aerie_model_options_init();
    options.model = model_name;
    const aerie::Model model(context, options);
    std::fprintf(stderr, "%s on %s, draft %s\n", model.info().path, model.info().device,
                 model.info().draft);

    aerie::Session session(model);
    aerie_request request = aerie_request_init();
    request.text = prompt;
    request.max_tokens = 200;
    session.begin(request);
    session.run([&](const aerie_step& step) {
        for (size_t i = 0; i < step.token_count; ++i)
            print_token(session.token(step.first_token + i));
        std::fflush(stdout);
        return !interrupted;
    });
    const aerie_statistics statistics = session.statistics();
    std::fprintf(stderr, "\n%zu tokens, %.1f tokens/s, tau %.2f\n", session.answer().token_count,
                 statistics.tokens_per_second, statistics.tau);
}

}  // namespace

int main(int count, char** arguments) {
    std::signal(SIGINT, [](int) { interrupted = 1; });
    try {
        stream(count > 1 ? arguments[1] : "aerie-tiny",
               count > 2 ? arguments[2] : "Once upon a time");
        return 0;
    } catch (const aerie::Failure& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return failure.status();
    }
}
