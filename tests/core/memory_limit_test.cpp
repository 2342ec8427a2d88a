// Memory limits of control groups, on simulated machines.
#include "core/memory_limit.h"

#include <cstdint>

#include "io/damage.h"

namespace aerie {
namespace {

using test::TestFolder;

constexpr const char* kVersion2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kVersion1 =
    "24 20 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "25 20 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

class MemoryLimit : public testing::Test {
  protected:
    void mounts(const std::string& table) const { folder_.write("proc/self/mountinfo", table); }
    void group(const std::string& lines) const { folder_.write("proc/self/cgroup", lines); }
    void limit(const std::string& file, const std::string& text) const {
        folder_.write("sys/fs/cgroup/" + file, text + "\n");
    }
    size_t found() const { return memory_limit(folder_.path()); }

    const TestFolder folder_;
};

TEST_F(MemoryLimit, WithoutGroupsThereIsNone) {
    EXPECT_EQ(found(), SIZE_MAX);
    mounts("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    group("0::/\n");
    EXPECT_EQ(found(), SIZE_MAX);
}

TEST_F(MemoryLimit, OfVersion2IsTheLeastAlongThePath) {
    mounts(kVersion2);
    group("0::/system.slice/aerie@8081.service\n");
    limit("system.slice/aerie@8081.service/memory.max", "max");
    EXPECT_EQ(found(), SIZE_MAX);
    limit("system.slice/memory.max", "3000000000");
    EXPECT_EQ(found(), 3'000'000'000u);
    limit("system.slice/aerie@8081.service/memory.max", "2147483648");
    EXPECT_EQ(found(), 2'147'483'648u);
    limit("user.slice/memory.max", "5");
    EXPECT_EQ(found(), 2'147'483'648u) << "another group's";
}

// In a container the group is the root of what is mounted, whatever it is called outside.
TEST_F(MemoryLimit, OfAContainer) {
    mounts(kVersion2);
    group("0::/\n");
    limit("memory.max", "1073741824");
    EXPECT_EQ(found(), size_t(1) << 30);
    mounts("25 20 0:22 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    group("7:memory:/docker/0123/inner\n3:cpu:/elsewhere\n");
    limit("memory/memory.limit_in_bytes", "700000000");
    EXPECT_EQ(found(), 700'000'000u);
    limit("memory/inner/memory.limit_in_bytes", "600000000");
    EXPECT_EQ(found(), 600'000'000u);
    group("7:memory:/../other\n");
    EXPECT_EQ(found(), 700'000'000u) << "a group outside of the mount";
}

TEST_F(MemoryLimit, OfVersion1) {
    mounts(kVersion1);
    group("9:cpu,cpuacct:/batch\n7:memory:/batch/job\n0::/\n");
    limit("memory/memory.limit_in_bytes", "9223372036854771712");
    EXPECT_GE(found(), size_t(1) << 60) << "as good as none";
    limit("memory/batch/memory.limit_in_bytes", "800000000");
    limit("cpu/batch/memory.limit_in_bytes", "1");
    EXPECT_EQ(found(), 800'000'000u);
}

TEST_F(MemoryLimit, PlacesMayHaveSpaces) {
    mounts("30 23 0:26 / /sys/fs/cgroup/one\\040more rw - cgroup2 cgroup2 rw\n");
    group("0::/a b\n");
    limit("one more/a b/memory.max", "123456789");
    EXPECT_EQ(found(), 123'456'789u);
}

TEST_F(MemoryLimit, DamagedTablesSayNothing) {
    for (const char* table :
         {"\n", "30 23", "- - - -", "30 23 0:26 / /x rw - cgroup2", "\\1\\04\\"}) {
        mounts(table);
        for (const char* groups : {"", ":", "0:", "::", "0::", "a:b\n:c:d\n"}) {
            group(groups);
            EXPECT_EQ(found(), SIZE_MAX) << table << " " << groups;
        }
    }
}

}  // namespace
}  // namespace aerie
