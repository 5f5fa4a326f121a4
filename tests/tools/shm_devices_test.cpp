// SPDX-License-Identifier: BSD-2-Clause
// What the tool as users get it says of the devices of this machine, and what kind of file it is.
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/tools/classic.hpp"
#include "tests/tools/pattern.hpp"
#include "tests/tools/private_fabric.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Devices, ListShm0WithItsGuid) {
  const PrivateFabric fabric;
  const Ending list = run(real_tool("ibv_devices", fabric.environment()), {});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, MatchesRegex("    device          \t   node GUID\n"
                                     "    ------          \t----------------\n"
                                     "    shm0            \t[0-9a-f]{16}\n"));
  const Ending info = run(real_tool("ibv_devinfo", fabric.environment()), {});
  // The same GUID in the form of devinfo.
  const auto guid =
      Pattern("shm0 +\t([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})").find(list.out);
  ASSERT_TRUE(guid);
  EXPECT_THAT(info.out, HasSubstr("\tnode_guid:\t\t\t" + (*guid)[1] + ":" + (*guid)[2] + ":" +
                                  (*guid)[3] + ":" + (*guid)[4] + "\n"));
}

TEST(Devices, Shm0IsAnActiveInfinibandPort) {
  const PrivateFabric fabric;
  const Ending info = run(real_tool("ibv_devinfo", fabric.environment()), {"-v"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(info.err, "");
  EXPECT_THAT(info.out, ::testing::StartsWith("hca_id:\tshm0\n\ttransport:\t\t\tInfiniBand (0)\n"));
  for (const char* line : {"\tphys_port_cnt:\t\t\t1\n", "\t\tport:\t1\n",
                           "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n", "\t\t\tmax_mtu:\t\t4096 (5)\n",
                           "\t\t\tlink_layer:\t\tInfiniBand\n", "\t\t\tmax_msg_sz:\t\t0x40000000\n",
                           "\t\t\tphys_state:\t\tLINK_UP (5)\n", "\t\t\tGID[  0]:\t\t"}) {
    EXPECT_THAT(info.out, HasSubstr(line));
  }
  EXPECT_THAT(info.out, Not(HasSubstr("port_lid:\t\t0\n")));
  EXPECT_THAT(info.out, Not(HasSubstr("invalid")));
}

TEST(Devices, UnderTheToolsOwnNameTheySayThatTheProcessorSeesTheirAtomics) {
  const PrivateFabric fabric;
  const Ending info = run(real_tool("verbatim", fabric.environment()), {"devinfo", "-v"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("\tatomic_cap:\t\t\tATOMIC_HCA (1)\n"));
  EXPECT_THAT(info.out, HasSubstr("\tpci_atomic_caps (for the processor too):\n"
                                  "\t\t\t\t\tfetch_add of 8 bytes\n"
                                  "\t\t\t\t\tcompare_swap of 8 bytes\n"));
}

TEST(Devices, TheEnvironmentShapesThem) {
  const PrivateFabric fabric;
  const Environment three = fabric.environment({{"VERBATIM_SHM_DEVICES", "3"}});
  EXPECT_EQ(run(real_tool("ibv_devinfo", three), {"-l"}).out,
            "3 HCAs found:\n\tshm0\n\tshm1\n\tshm2\n\n");
  const Environment ethernet = fabric.environment({{"VERBATIM_SHM_LINK", "ethernet"}});
  const Ending info = run(real_tool("ibv_devinfo", ethernet), {"-v"});
  EXPECT_THAT(info.out, HasSubstr("link_layer:\t\tEthernet\n"));
  for (const char* const row :
       {"0\\]:\t\tfe80:[0-9a-f:]+, RoCE v1", "1\\]:\t\tfe80:[0-9a-f:]+, RoCE v2",
        "2\\]:\t\t0000:[0-9a-f:]+:ffff:[0-9a-f:]+, RoCE v1",
        "3\\]:\t\t::ffff:198\\.1[89]\\.[0-9.]+, RoCE v2"})
    EXPECT_TRUE(Pattern(std::string("GID\\[  ") + row + "\n").find(info.out)) << row << info.out;
}

TEST(Devices, AreNamedWhenAnotherIsWanted) {
  const PrivateFabric fabric;
  const Ending info = run(real_tool("ibv_devinfo", fabric.environment()), {"-d", "mlx5_0"});
  EXPECT_EQ(info.status, 255);
  EXPECT_EQ(info.err, "IB device 'mlx5_0' wasn't found (there is: shm0)\n");
}

#ifdef VERBATIM_TOOL_IS_STATIC
TEST(Tool, IsOneStaticFileOfModestSize) {
  const int fd = open(VERBATIM_TOOL, O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  Elf64_Ehdr header;
  ASSERT_EQ(pread(fd, &header, sizeof(header), 0), ssize_t(sizeof(header)));
  std::uint64_t loaded = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const auto at = static_cast<off_t>(header.e_phoff) + i * header.e_phentsize;
    ASSERT_EQ(pread(fd, &segment, sizeof(segment), at), ssize_t(sizeof(segment)));
    EXPECT_NE(segment.p_type, unsigned{PT_INTERP}) << "wants a dynamic loader";
    EXPECT_NE(segment.p_type, unsigned{PT_DYNAMIC});
    if (segment.p_type == PT_LOAD) loaded += segment.p_filesz;
  }
  close(fd);
  // What is loaded is what stripping leaves.
  EXPECT_LE(loaded, std::uint64_t{4'300'000});
  RecordProperty("stripped_bytes", std::to_string(loaded));
}
#endif

}  // namespace
}  // namespace verbatim::tools
