// The main function of a fuzz target where libFuzzer is absent: fuzz_<target> TARGET REPOSITORY
// runs the target on its seeds, and on what is left of each when its end is missing. So every build
// of the tests compiles the targets and runs their checks.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** arguments) {
    if (count != 3) return 2;
    constexpr size_t kCuts = 64;  // a seed has about so many
    int inputs = 0;
    const auto seeds = aerie::fuzz::seeds_of_targets(arguments[2]);
    for (const std::string& seed : seeds.at(arguments[1])) {
        const size_t step = std::max<size_t>(1, seed.size() / kCuts);
        for (size_t left_out = 0; left_out <= seed.size(); left_out += step, ++inputs) {
            // A copy of its own: a sanitizer sees what is read behind its end.
            const std::vector<uint8_t> input(seed.begin(), seed.end() - left_out);
            LLVMFuzzerTestOneInput(input.data(), input.size());
        }
    }
    std::printf("%s: %d inputs\n", arguments[1], inputs);
    return inputs > 0 ? 0 : 1;
}
