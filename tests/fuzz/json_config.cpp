// Fuzzes JSON, which must stay the same when it is written and read again, and the model
// configurations.
#include "draft/head_of_config.h"
#include "fuzz.h"
#include "io/json.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace aerie;
    Json json;
    bool parsed = false;
    fuzz::run([&] {
        json = Json::parse(fuzz::text(data, size), "fuzz");
        parsed = true;
    });
    if (!parsed) return 0;
    const std::string written = json.dump();
    if (Json::parse(written, "written").dump() != written) std::abort();
    fuzz::run([&] { parse_model_config(json, "fuzz"); });
    fuzz::run([&] { test::head_of_config(json); });
    return fuzz::run([&] { parse_generation_config(json, "fuzz"); });
}
