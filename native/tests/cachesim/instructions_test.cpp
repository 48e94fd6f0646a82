// Instructions of which the plugin has to know what they are, as an assembler writes them.
#include "cachesim/instructions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace atl::cachesim {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(CachesimInstructions, ALockOrAnExchangeIsAtomicBehindAnyPrefix) {
  for (const Bytes& code : {
           Bytes{0xF0, 0x48, 0xFF, 0x07},                                // lock incq (%rdi)
           Bytes{0xF0, 0x0F, 0xC1, 0x07},                                // lock xadd %eax,(%rdi)
           Bytes{0x66, 0xF0, 0xFF, 0x07},                                // lock incw (%rdi)
           Bytes{0x64, 0xF0, 0x48, 0xFF, 0x04, 0x25, 0, 0, 0, 0},        // lock incq %fs:0
           Bytes{0x65, 0xF0, 0x48, 0x0F, 0xB1, 0x0C, 0x25, 0, 0, 0, 0},  // lock cmpxchg, %gs:0
           Bytes{0x67, 0xF0, 0xFF, 0x07},                                // lock incl (%edi)
           Bytes{0x48, 0x87, 0x07},                                      // xchg %rax,(%rdi)
           Bytes{0x86, 0x07},                                            // xchg %al,(%rdi)
           Bytes{0x65, 0x48, 0x87, 0x04, 0x25, 0, 0, 0, 0},              // xchg %rax,%gs:0
       }) {
    EXPECT_TRUE(is_atomic(code)) << testing::PrintToString(code);
  }
}

TEST(CachesimInstructions, WhatReadsAndWritesWithoutALockIsNot) {
  for (const Bytes& code : {
           Bytes{},                                          // QEMU could not read it
           Bytes{0x48, 0xFF, 0x07},                          // incq (%rdi)
           Bytes{0x48, 0x0F, 0xB1, 0x0F},                    // cmpxchg %rcx,(%rdi)
           Bytes{0x48, 0x8B, 0x87, 0xF0, 0, 0, 0},           // mov 0xf0(%rdi),%rax
           Bytes{0x0F, 0x87, 0, 0, 0, 0},                    // ja
           Bytes{0x64, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0},  // mov %fs:0,%rax
           Bytes{0xF3, 0x48, 0xA5},                          // rep movsq
           Bytes{0xC5, 0xFE, 0x6F, 0x07},                    // vmovdqu (%rdi),%ymm0
       }) {
    EXPECT_FALSE(is_atomic(code)) << testing::PrintToString(code);
  }
}

TEST(CachesimInstructions, OnlyCr3IsThePageTable) {
  EXPECT_TRUE(sets_page_table(Bytes{0x0F, 0x22, 0xD8}));        // mov %rax,%cr3
  EXPECT_TRUE(sets_page_table(Bytes{0x0F, 0x22, 0xDF}));        // mov %rdi,%cr3
  EXPECT_TRUE(sets_page_table(Bytes{0x41, 0x0F, 0x22, 0xDC}));  // mov %r12,%cr3
  EXPECT_FALSE(sets_page_table(Bytes{0x0F, 0x22, 0xE0}));       // mov %rax,%cr4
  EXPECT_FALSE(sets_page_table(Bytes{0x0F, 0x20, 0xD8}));       // mov %cr3,%rax
  EXPECT_FALSE(sets_page_table(Bytes{0x0F, 0x22}));
  EXPECT_FALSE(sets_page_table(Bytes{}));
}

TEST(CachesimInstructions, OnlyHltHalts) {
  EXPECT_TRUE(halts(Bytes{0xF4}));
  EXPECT_FALSE(halts(Bytes{0xF5}));
  EXPECT_FALSE(halts(Bytes{}));
}

}  // namespace
}  // namespace atl::cachesim
