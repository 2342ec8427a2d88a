// The CUDA backend with drivers that are too old, broken or absent, and with a driver that has to
// compile its kernels.
#include <gtest/gtest.h>

#include "cuda/code.h"
#include "cuda/cuda_backend.h"
#include "io/damage.h"
#include "simt/machine.h"

namespace aerie {

namespace {

using test::error_of;

class CudaDriver : public testing::Test {
  protected:
    void SetUp() override { simt::set_gpus({simt::Gpu{}}); }
    void TearDown() override { simt::set_gpus({simt::Gpu{}}); }
};

TEST(CudaCode, SaysWhatItsDriverHasToCompile) {
    EXPECT_FALSE(cuda::is_compiled_by_driver("75-real,80-real,90", 9, 0));
    EXPECT_FALSE(cuda::is_compiled_by_driver("75-real,80-real,90", 8, 9));
    EXPECT_TRUE(cuda::is_compiled_by_driver("75-real,80-real,90", 10, 0));
    EXPECT_FALSE(cuda::is_compiled_by_driver("90,100-real,120", 10, 3));
    EXPECT_TRUE(cuda::is_compiled_by_driver("90-virtual", 9, 0));
    EXPECT_FALSE(cuda::is_compiled_by_driver("90-real", 10, 0));  // no driver can
    EXPECT_FALSE(cuda::is_compiled_by_driver("native", 12, 0));
}

TEST(CudaCode, SaysWhichDriverIsWanted) {
    EXPECT_EQ(cuda::driver_problem(12040, 13000),
              "its driver is for CUDA 12.4, and this build is of CUDA 13.0: install a driver of "
              "version 580 or newer");
    EXPECT_NE(cuda::driver_problem(11080, 12080).find("12.8: install a driver of version 525"),
              std::string::npos);
    EXPECT_NE(cuda::driver_problem(13000, 14010).find("14.1: install a newer one"),
              std::string::npos);
}

// The GPUs of such a machine are not known. The list says that there is a problem, and what to do
// about it.
TEST_F(CudaDriver, OneThatIsTooOldIsAProblem) {
    simt::set_driver(12040, cudaErrorInsufficientDriver);
    const std::vector<Capabilities> devices = cuda_capabilities();
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_EQ(devices[0].name, "cuda:0");
    for (const char* named : {"CUDA 12.4", "CUDA 13.0", "580"})
        EXPECT_NE(devices[0].problem.find(named), std::string::npos) << devices[0].problem;
    for (const std::string name : {"cuda:0", "cuda:1"})
        EXPECT_EQ(error_of([=] { open_cuda(name); }), name + ": " + devices[0].problem);
}

TEST_F(CudaDriver, OneThatFailsIsAProblem) {
    simt::set_driver(CUDART_VERSION, cudaErrorSystemNotReady);
    const std::vector<Capabilities> devices = cuda_capabilities();
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_NE(devices[0].problem.find("system not yet initialized"), std::string::npos);
    EXPECT_EQ(error_of([] { open_cuda("cuda:0"); }), "cuda:0: " + devices[0].problem);
}

// The runtime has the same error for no driver and for an old one.
TEST_F(CudaDriver, NoDriverAndNoGpuAreNone) {
    simt::set_driver(0, cudaErrorInsufficientDriver);
    EXPECT_TRUE(cuda_capabilities().empty());
    const std::string message = error_of([] { open_cuda("cuda:0"); });
    EXPECT_EQ(message.find("cuda:0: no NVIDIA driver"), 0u) << message;
    simt::set_driver(CUDART_VERSION, cudaErrorNoDevice);
    EXPECT_TRUE(cuda_capabilities().empty());
}

// The build for the execution model has "80-real,90".
TEST_F(CudaDriver, OneThatCompilesIsTold) {
    simt::set_gpus({{9, 0}, {12, 0}});
    const std::vector<Capabilities> devices = cuda_capabilities();
    ASSERT_EQ(devices.size(), 2u);
    for (size_t i : {0, 1}) {
        EXPECT_EQ(devices[i].details.size(), i);
        std::vector<std::string> notes;
        open_cuda(devices[i].name, false, [&](const std::string& what) { notes.push_back(what); });
        ASSERT_EQ(notes.size(), i);
        for (const std::string& what : notes)
            EXPECT_NE(what.find("compute capability 12.0"), std::string::npos) << what;
    }
}

}  // namespace
}  // namespace aerie
