// In place of hub.cpp where libcurl was missing when aerie was built.
#include "commands.h"
#include "core/error.h"
#include "hub.h"

namespace aerie {

namespace {

[[noreturn]] void refuse() {
    throw Error("this build cannot download: it was made without libcurl (libcurl4-openssl-dev)");
}

}  // namespace

std::filesystem::path fetch_from_hub(const std::string&, bool) {
    refuse();
}

int run_pull(const PullCommandOptions&) {
    refuse();
}

}  // namespace aerie
