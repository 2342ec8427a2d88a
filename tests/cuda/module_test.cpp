// libaerie_cuda.so as a program without CUDA loads it, and files in its place that are not it.
#include "cuda/module/module.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "cuda/cuda_backend.h"

namespace fs = std::filesystem;

namespace aerie::cuda::test {
namespace {

std::string problem_with(const std::vector<fs::path>& places) {
    std::string problem;
    EXPECT_EQ(load_module(places, problem), nullptr);
    return problem;
}

// The file lies in the build folder, and this program in another one.
TEST(CudaModule, IsLoadedFromItsPlace) {
    std::string problem = "none was tried";
    const CudaModule* const module =
        load_module({"/nowhere/libaerie_cuda.so", MODULE_FILE}, problem);
    ASSERT_NE(module, nullptr) << problem;
    EXPECT_EQ(problem, "");
    const std::vector<Capabilities> devices = module->capabilities();
    EXPECT_EQ(devices.empty(), !module->absence().empty());
    for (const Capabilities& device : devices) EXPECT_TRUE(device.name.starts_with("cuda:"));
    // An exception of the file is caught here as what it is.
    try {
        module->open("cuda:99", false, {});
        ADD_FAILURE() << "there is no GPU of this number";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("cuda:99"), std::string::npos) << error.what();
    }
    EXPECT_THROW(module->open_training("cuda:99"), Error);
}

TEST(CudaModule, IsMissedInOneLine) {
    EXPECT_NE(problem_with({}).find("not beside it"), std::string::npos);
    EXPECT_NE(problem_with({"/nowhere/libaerie_cuda.so"}).find("not beside it"), std::string::npos);
    // This program has none beside it.
    EXPECT_TRUE(cuda_capabilities().empty());
    EXPECT_NE(cuda_absence().find(kModuleFile), std::string::npos);
    EXPECT_THROW(open_cuda("cuda:0"), Error);
}

TEST(CudaModule, OtherFilesAreNotUsed) {
    const fs::path text = fs::path(testing::TempDir()) / kModuleFile;
    std::ofstream(text) << "not a library";
    EXPECT_NE(problem_with({text}).find("cannot load it"), std::string::npos);
    fs::remove(text);
    EXPECT_NE(problem_with({"/lib/x86_64-linux-gnu/libm.so.6"}).find("is not aerie's"),
              std::string::npos);
    EXPECT_NE(problem_with({OTHER_MODULE_FILE}).find("is of version 0.0.1, this program"),
              std::string::npos);
}

}  // namespace
}  // namespace aerie::cuda::test
