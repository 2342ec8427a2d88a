// The flags of llama.cpp: each stands in the page that users read.
#include "peer_flags.h"

#include <gtest/gtest.h>

#include "io/input_file.h"
#include "paths.h"

namespace aerie::test {
namespace {

TEST(PeerFlags, StandInTheirPage) {
    const std::string page = read_text(repository_dir() / "docs/llama-cpp-flags.md", 1 << 20);
    ASSERT_GT(peer_flags().size(), 20u);
    for (const PeerFlag& flag : peer_flags()) {
        std::string_view names = flag.names;
        while (!names.empty()) {
            const std::string name(names.substr(0, names.find(',')));
            names.remove_prefix(std::min(name.size() + 1, names.size()));
            EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
            EXPECT_EQ(peer_flag(name), &flag) << name << " stands in two rows";
        }
    }
}

}  // namespace
}  // namespace aerie::test
