// SPDX-License-Identifier: GPL-2.0-or-later
// What the plugin uses of QEMU's interface for TCG plugins, version 4 (QEMU 9.2 to 10.0).
//
// QEMU documents the interface in docs/devel/tcg-plugins.rst and declares it in qemu-plugin.h,
// which no Debian package has. QEMU looks at `qemu_plugin_version` and refuses a plugin whose
// version it does not support.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;

struct qemu_info_t {
  const char* target_name;
  struct {
    int min, cur;
  } version;
  bool system_emulation;
  struct {
    int smp_vcpus, max_vcpus;
  } system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;

// GLib's, of which QEMU's interface has these two.
struct GArray {
  char* data;
  unsigned len;
};
struct GByteArray {
  std::uint8_t* data;
  unsigned len;
};
GByteArray* g_byte_array_new();
GByteArray* g_byte_array_set_size(GByteArray*, unsigned bytes);

struct qemu_plugin_reg_descriptor {
  qemu_plugin_register* handle;
  const char* name;
  const char* feature;
};

// A 64-bit number of each vCPU.
struct qemu_plugin_u64 {
  qemu_plugin_scoreboard* score;
  std::size_t offset;
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W = 2 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cond { QEMU_PLUGIN_COND_GE = 7 };

using qemu_plugin_simple_cb_t = void (*)(qemu_plugin_id_t);
using qemu_plugin_vcpu_simple_cb_t = void (*)(qemu_plugin_id_t, unsigned vcpu);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned vcpu, void* data);
using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned vcpu, qemu_plugin_meminfo_t,
                                           std::uint64_t vaddr, void* data);

void qemu_plugin_reset(qemu_plugin_id_t, qemu_plugin_simple_cb_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t at);
std::size_t qemu_plugin_insn_data(const qemu_plugin_insn*, void* into, std::size_t bytes);

void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(qemu_plugin_tb*, qemu_plugin_op,
                                                       qemu_plugin_u64, std::uint64_t);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t,
                                               qemu_plugin_cb_flags, qemu_plugin_cond,
                                               qemu_plugin_u64, std::uint64_t, void* data);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t,
                                      qemu_plugin_cb_flags, qemu_plugin_mem_rw, void* data);

void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t,
                                            qemu_plugin_cb_flags, void* data);

// Of qemu_plugin_reg_descriptor; for a vCPU's thread.
GArray* qemu_plugin_get_registers();
int qemu_plugin_read_register(qemu_plugin_register*, GByteArray* into);

unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, std::uint64_t vaddr);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);

qemu_plugin_scoreboard* qemu_plugin_scoreboard_new(std::size_t bytes);
void* qemu_plugin_scoreboard_find(qemu_plugin_scoreboard*, unsigned vcpu);
}
