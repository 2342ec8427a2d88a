// The `aerie` program: errors are one line on stderr and an exit code.
#include <exception>
#include <new>
#include <string>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "jinja/jinja.h"
#include "terminal.h"

namespace {

int run(int argc, char** argv) {
    const aerie::CommandLine line = aerie::parse_command_line(argc, argv);
    if (line.generate && line.generate->prompts) return aerie::run_generate_many(*line.generate);
    if (line.generate) return aerie::run_generate(*line.generate);
    if (line.chat) return aerie::run_chat(*line.chat);
    if (line.tokenize) return aerie::run_tokenize(*line.tokenize);
    if (line.render) return aerie::run_render(*line.render);
    if (line.info) return aerie::run_info(*line.info);
    if (line.devices) return aerie::run_devices(*line.devices);
    if (line.models) return aerie::run_models(*line.models);
    if (line.cache) return aerie::run_cache(*line.cache);
    if (line.perplexity) return aerie::run_perplexity(*line.perplexity);
    if (line.synth) return aerie::run_synth(*line.synth);
    if (line.convert) return aerie::run_convert(*line.convert);
    if (line.bench) return aerie::run_bench(*line.bench);
    if (line.compare) return aerie::run_compare(*line.compare);
    if (line.train) return aerie::run_train(*line.train);
    if (line.forget) return aerie::run_forget(*line.forget);
    if (line.pull) return aerie::run_pull(*line.pull);
    if (line.serve) return aerie::run_serve(*line.serve);
    aerie::print(line.text);
    return 0;
}

int fail(const std::string& message, int code) {
    aerie::tell_error(message);
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    aerie::prepare_streams_and_signals();
    aerie::platform::return_freed_memory();
    try {
        return run(argc, argv);
    } catch (const aerie::jinja::TextTooLong& error) {
        return fail(error.what(), 2);
    } catch (const aerie::jinja::Failure& error) {
        return fail(error.what(), 1);  // a template that cannot be used is a bad file
    } catch (const aerie::UsageError& error) {
        return fail(error.what(), 2);
    } catch (const aerie::ReaderGone& error) {
        aerie::end_by_broken_pipe();
        return fail(error.what(), 1);
    } catch (const std::bad_alloc&) {
        return fail("out of memory", 1);
    } catch (const std::exception& error) {
        return fail(error.what(), 1);
    }
}
